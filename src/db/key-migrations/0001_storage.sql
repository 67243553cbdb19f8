-- Every key's row is written twice within milliseconds (claim, completion). Half a page is left free, so that the second
-- version finds room beside the first and no index has to be touched.
ALTER TABLE "idem" SET (fillfactor = 50);--> statement-breakpoint
-- Rows die all day: vacuum and analyze by small shares, not by a fifth of what may be a hundred million rows.
ALTER TABLE "idem" SET (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02
);
