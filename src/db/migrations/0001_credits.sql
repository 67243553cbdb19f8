CREATE TABLE "balances" (
	"tenant" text COLLATE "C" PRIMARY KEY NOT NULL,
	"balance_micros" bigint NOT NULL,
	"held_micros" bigint NOT NULL,
	CONSTRAINT "balances_never_negative" CHECK ("balances"."balance_micros" >= 0 and "balances"."held_micros" >= 0),
	CONSTRAINT "balances_exact_in_json" CHECK ("balances"."balance_micros" + "balances"."held_micros" <= 9007199254740991)
);
--> statement-breakpoint
CREATE TABLE "holds" (
	"tenant" text COLLATE "C" NOT NULL,
	"source_type" text NOT NULL,
	"source_id" text COLLATE "C" NOT NULL,
	"amount_micros" bigint NOT NULL,
	"request_key" text COLLATE "C",
	"expires_at" timestamp with time zone,
	CONSTRAINT "holds_tenant_source_type_source_id_pk" PRIMARY KEY("tenant","source_type","source_id"),
	CONSTRAINT "holds_not_negative" CHECK ("holds"."amount_micros" >= 0)
);
--> statement-breakpoint
CREATE TABLE "ledger" (
	"tenant" text COLLATE "C" NOT NULL,
	"id" uuid NOT NULL,
	"kind" text NOT NULL,
	"amount_micros" bigint NOT NULL,
	"source_type" text NOT NULL,
	"source_id" text COLLATE "C" NOT NULL,
	"unknown_attempts" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "ledger_tenant_id_pk" PRIMARY KEY("tenant","id"),
	CONSTRAINT "ledger_once_per_source" UNIQUE("tenant","source_type","source_id","kind"),
	CONSTRAINT "ledger_sign" CHECK (case "ledger"."kind" when 'credit' then "ledger"."amount_micros" > 0 when 'release' then "ledger"."amount_micros" >= 0 when 'hold' then "ledger"."amount_micros" <= 0 when 'charge' then "ledger"."amount_micros" < 0 else false end),
	CONSTRAINT "ledger_source_known" CHECK (("ledger"."kind" = 'credit') = ("ledger"."source_type" = 'credit') and "ledger"."source_type" in ('credit', 'job', 'rewrite')),
	CONSTRAINT "ledger_unknown_attempts_count" CHECK ("ledger"."unknown_attempts" >= 0 and ("ledger"."kind" = 'release' or "ledger"."unknown_attempts" = 0))
);
--> statement-breakpoint
CREATE INDEX "holds_expiry" ON "holds" USING btree ("expires_at") WHERE "holds"."expires_at" is not null;--> statement-breakpoint
CREATE INDEX "holds_request" ON "holds" USING btree ("tenant","request_key") WHERE "holds"."request_key" is not null;