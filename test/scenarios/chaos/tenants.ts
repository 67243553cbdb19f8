/** What the tenants of a run begin with, in micros: two that never want for credits, and one that often does. */
export const startingCredits = { acme: 1_000_000_000, globex: 1_000_000_000, tight: 20_000 } as const;

/** Tenants that write orders and documents. */
export const richTenants = ['acme', 'globex'] as const;
/** The tenant whose jobs are refused until somebody adds credits. */
export const poorTenant = 'tight';
