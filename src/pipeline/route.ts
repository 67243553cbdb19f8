import * as v from 'valibot';
import type { Mounted } from '../handler.ts';

/** A mounted procedure with what is derived from it once. */
export type ApiRoute = {
  readonly kind: 'api';
  readonly mounted: Mounted;
  readonly isKeyed: boolean;
  /** Unknown query names are dropped. */
  readonly querySchema: v.GenericSchema | undefined;
  /** The media type a body must have; undefined: no body is taken. */
  readonly mediaType: string | undefined;
};

/** Derives what the pipeline asks of a procedure on every request. */
export function apiRoute(mounted: Mounted): ApiRoute {
  const { procedure } = mounted;
  const takesBody = procedure.method !== 'GET' && procedure.body !== undefined;
  return {
    kind: 'api',
    mounted,
    isKeyed: procedure.method !== 'GET',
    querySchema: procedure.query === undefined ? undefined : v.object(procedure.query),
    mediaType: takesBody ? (procedure.mediaType ?? 'application/json') : undefined,
  };
}
