CREATE TABLE "buckets" (
	"tenant" text COLLATE "C" PRIMARY KEY NOT NULL,
	"tokens" double precision NOT NULL,
	"refilled_at" timestamp with time zone NOT NULL,
	CONSTRAINT "buckets_never_negative" CHECK ("buckets"."tokens" >= 0)
);
--> statement-breakpoint
CREATE TABLE "docs" (
	"tenant" text COLLATE "C" NOT NULL,
	"id" text COLLATE "C" NOT NULL,
	"title" text NOT NULL,
	"body" text NOT NULL,
	"version" integer NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	"updated_by" text NOT NULL,
	"deleted_at" timestamp (3) with time zone,
	CONSTRAINT "docs_tenant_id_pk" PRIMARY KEY("tenant","id"),
	CONSTRAINT "docs_id_syntax" CHECK ("docs"."id" ~ '^[A-Za-z0-9_-]{1,64}$'),
	CONSTRAINT "docs_title_length" CHECK (char_length("docs"."title") <= 200),
	CONSTRAINT "docs_body_length" CHECK (char_length("docs"."body") <= 1000000),
	CONSTRAINT "docs_version_counts" CHECK ("docs"."version" >= 1),
	CONSTRAINT "docs_deleted_is_empty" CHECK ("docs"."deleted_at" is null or ("docs"."title" = '' and "docs"."body" = '')),
	CONSTRAINT "docs_live_has_title" CHECK ("docs"."deleted_at" is not null or char_length("docs"."title") >= 1)
);
--> statement-breakpoint
CREATE TABLE "idem" (
	"tenant" text COLLATE "C" NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"fingerprint" "bytea" NOT NULL,
	"state" text NOT NULL,
	"fencing_token" uuid NOT NULL,
	"attempt" integer NOT NULL,
	"lease_until" timestamp with time zone NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"expires_at" timestamp (3) with time zone NOT NULL,
	"sweep_at" timestamp (3) with time zone NOT NULL,
	"status" smallint,
	"headers" text,
	"body" "bytea",
	CONSTRAINT "idem_tenant_key_pk" PRIMARY KEY("tenant","key"),
	CONSTRAINT "idem_tenant_length" CHECK (octet_length("idem"."tenant") between 1 and 64),
	CONSTRAINT "idem_key_length" CHECK (octet_length("idem"."key") between 1 and 255),
	CONSTRAINT "idem_state_known" CHECK ("idem"."state" in ('in_progress', 'done', 'expired')),
	CONSTRAINT "idem_attempt_counts" CHECK ("idem"."attempt" >= 1),
	CONSTRAINT "idem_done_has_status" CHECK ("idem"."state" <> 'done' or "idem"."status" is not null),
	CONSTRAINT "idem_only_done_has_body" CHECK ("idem"."state" = 'done' or "idem"."body" is null)
);
--> statement-breakpoint
CREATE TABLE "orders" (
	"tenant" text COLLATE "C" NOT NULL,
	"id" uuid NOT NULL,
	"cents" integer NOT NULL,
	"item" text NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "orders_tenant_id_pk" PRIMARY KEY("tenant","id"),
	CONSTRAINT "orders_cents_positive" CHECK ("orders"."cents" between 1 and 1000000000),
	CONSTRAINT "orders_item_length" CHECK (char_length("orders"."item") between 1 and 200)
);
--> statement-breakpoint
CREATE INDEX "docs_newest" ON "docs" USING btree ("tenant","created_at" DESC NULLS LAST,"id" DESC NULLS LAST) WHERE "docs"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "idem_sweep" ON "idem" USING btree ("sweep_at");