CREATE TABLE "job_events" (
	"tenant" text COLLATE "C" NOT NULL,
	"job_id" uuid NOT NULL,
	"seq" integer NOT NULL,
	"event" text NOT NULL,
	"data" text NOT NULL,
	CONSTRAINT "job_events_tenant_job_id_seq_pk" PRIMARY KEY("tenant","job_id","seq"),
	CONSTRAINT "job_events_known" CHECK ("job_events"."event" in ('status', 'delta', 'reset', 'done', 'error', 'cancelled')),
	CONSTRAINT "job_events_numbered" CHECK ("job_events"."seq" >= 1)
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"tenant" text COLLATE "C" NOT NULL,
	"id" uuid NOT NULL,
	"kind" text NOT NULL,
	"prompt" text NOT NULL,
	"prompt_estimate" integer NOT NULL,
	"max_tokens" integer NOT NULL,
	"price_micros" integer NOT NULL,
	"hold_micros" bigint NOT NULL,
	"status" text NOT NULL,
	"version" integer NOT NULL,
	"attempts" integer NOT NULL,
	"tries" integer NOT NULL,
	"max_attempts" integer NOT NULL,
	"run_at" timestamp with time zone NOT NULL,
	"fencing_token" uuid,
	"lease_until" timestamp with time zone,
	"last_seq" integer NOT NULL,
	"attempt_tokens" integer NOT NULL,
	"result" text,
	"error_code" text,
	"error_message" text,
	"prompt_tokens" integer NOT NULL,
	"completion_tokens" integer NOT NULL,
	"unknown_attempts" integer NOT NULL,
	"cost_micros" bigint NOT NULL,
	"delivery_digest" "bytea",
	"traceparent" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone,
	"texts_deleted_at" timestamp (3) with time zone,
	CONSTRAINT "jobs_tenant_id_pk" PRIMARY KEY("tenant","id"),
	CONSTRAINT "jobs_once_per_delivery" UNIQUE("tenant","delivery_digest"),
	CONSTRAINT "jobs_status_known" CHECK ("jobs"."status" in ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead')),
	CONSTRAINT "jobs_running_has_owner" CHECK (("jobs"."status" = 'running') = ("jobs"."fencing_token" is not null) and ("jobs"."status" = 'running') = ("jobs"."lease_until" is not null)),
	CONSTRAINT "jobs_ended_has_time" CHECK (("jobs"."status" in ('queued', 'running')) = ("jobs"."ended_at" is null)),
	CONSTRAINT "jobs_succeeded_has_result" CHECK (("jobs"."status" = 'succeeded' and "jobs"."texts_deleted_at" is null) = ("jobs"."result" is not null)),
	CONSTRAINT "jobs_failed_has_error" CHECK (("jobs"."status" in ('failed', 'dead')) = ("jobs"."error_code" is not null) and ("jobs"."error_code" is null) = ("jobs"."error_message" is null)),
	CONSTRAINT "jobs_cost_within_hold" CHECK ("jobs"."cost_micros" between 0 and "jobs"."hold_micros"),
	CONSTRAINT "jobs_counts" CHECK (least("jobs"."attempts", "jobs"."tries", "jobs"."attempt_tokens", "jobs"."prompt_tokens", "jobs"."completion_tokens", "jobs"."unknown_attempts", "jobs"."price_micros") >= 0 and least("jobs"."version", "jobs"."max_attempts", "jobs"."max_tokens", "jobs"."last_seq") >= 1)
);
--> statement-breakpoint
CREATE INDEX "jobs_queued" ON "jobs" USING btree ("run_at") WHERE "jobs"."status" = 'queued';--> statement-breakpoint
CREATE INDEX "jobs_leases" ON "jobs" USING btree ("lease_until") WHERE "jobs"."status" = 'running';--> statement-breakpoint
CREATE INDEX "jobs_retention" ON "jobs" USING btree ("ended_at") WHERE "jobs"."ended_at" is not null and "jobs"."texts_deleted_at" is null;--> statement-breakpoint
CREATE INDEX "jobs_by_status" ON "jobs" USING btree ("tenant","status","id");