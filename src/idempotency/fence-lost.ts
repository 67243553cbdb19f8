/** The claim is not ours any more: thrown where completion finds it out (everything rolls back), and what a lost lease aborts with. */
export class FenceLost extends Error {
  override readonly name = 'FenceLost';
}
