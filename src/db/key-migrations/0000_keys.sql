CREATE TABLE "buckets" (
	"tenant" text COLLATE "C" PRIMARY KEY NOT NULL,
	"tokens" double precision NOT NULL,
	"refilled_at" timestamp with time zone NOT NULL,
	CONSTRAINT "buckets_never_negative" CHECK ("buckets"."tokens" >= 0)
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
CREATE INDEX "idem_sweep" ON "idem" USING btree ("sweep_at");