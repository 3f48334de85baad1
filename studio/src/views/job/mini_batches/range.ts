// Numbers of mini-batches that a map or a table is limited to.

export interface Range {
  first: number;
  end: number | undefined;
}
