import type { Answer, Context, ReadHandler } from '../handler.ts';
import type { Reply } from '../http/reply.ts';
import { parseTagList } from '../protocol/entity-tag.ts';
import { problem } from '../protocol/errors.ts';
import { judgeConditions } from '../protocol/preconditions.ts';
import type { Input, ReadProcedure } from '../protocol/procedure.ts';

/** Steps 8 to 10 of a read: the answer, or 304 or 412 by its tag. */
export async function executeRead(
  procedure: ReadProcedure,
  handler: ReadHandler<ReadProcedure>,
  input: Input<ReadProcedure>,
  ctx: Context,
): Promise<Reply | { readonly stream: NonNullable<Answer['stream']>; readonly headers: Record<string, string> }> {
  const answer = await handler.read(input, ctx);
  if (answer.stream !== undefined) return { stream: answer.stream, headers: { ...answer.headers } };
  if (answer.status >= 300 || !procedure.tag) return plainReply(answer);
  return conditionalReply(answer, ctx);
}

/** A handler that compared the tag itself answers 304 already; for the others the comparison is made here. */
function conditionalReply(answer: Answer, ctx: Context): Reply {
  const tag = answer.headers?.ETag;
  if (tag === undefined) throw new Error('a tagged procedure answered without ETag');
  switch (judgeTag(tag, ctx)) {
    case 'not_modified':
      return { status: 304, headers: tagHeaders(tag), body: null };
    case 'failed':
      throw problem('precondition_failed', { headers: { ETag: tag }, members: { current_etag: tag } });
    case 'proceed':
      return {
        status: answer.status,
        headers: { 'Content-Type': 'application/json', ...answer.headers, ...tagHeaders(tag) },
        body: Buffer.from(JSON.stringify(answer.body)),
      };
  }
}

/** What a read's preconditions say of the current tag (RFC 9110 §13.2.2). */
export function judgeTag(tag: string, ctx: Pick<Context, 'ifMatch' | 'ifNoneMatch'>) {
  const parsed = parseTagList([tag]);
  const current = parsed.kind === 'tags' ? parsed.tags[0] : undefined;
  return judgeConditions({ ifMatch: ctx.ifMatch, ifNoneMatch: ctx.ifNoneMatch, current, safe: true });
}

function tagHeaders(tag: string): Record<string, string> {
  return { ETag: tag, 'Cache-Control': 'private, no-cache', Vary: 'Authorization' };
}

function plainReply(answer: Answer): Reply {
  const hasBody = answer.body !== undefined;
  const tag = answer.headers?.ETag;
  return {
    status: answer.status,
    headers: {
      ...(hasBody ? { 'Content-Type': 'application/json' } : {}),
      'Cache-Control': 'no-store',
      ...answer.headers,
      ...(tag === undefined ? {} : tagHeaders(tag)),
    },
    body: hasBody ? Buffer.from(JSON.stringify(answer.body)) : null,
  };
}
