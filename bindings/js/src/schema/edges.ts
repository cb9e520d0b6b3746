/** Bins of histograms and buckets. */
import type { Edges, Generalise } from './model.js';

/** The number of bins. */
export function bins(edges: Edges): number {
  return edges.kind === 'uniform' ? edges.count : edges.edges.length;
}

/** The bin of a value. Values beyond the edges belong to the end bins. */
export function binOf(edges: Edges, value: bigint): number {
  if (edges.kind === 'uniform') {
    if (value < edges.lo) return 0;
    const bin = (value - edges.lo) / edges.width;
    return bin < BigInt(edges.count) ? Number(bin) : edges.count - 1;
  }
  return Math.max(edges.edges.filter((edge) => edge <= value).length - 1, 0);
}

/** The same as a function of JavaScript numbers, where all edges are exact ones. */
export function fastBin(edges: Edges): ((value: number) => number) | undefined {
  const exact = (value: bigint): boolean => value > -(1n << 52n) && value < 1n << 52n;
  if (edges.kind === 'uniform') {
    const [lo, width, last] = [Number(edges.lo), Number(edges.width), edges.count - 1];
    if (!exact(edges.lo) || !exact(edges.width)) return undefined;
    return (value) => (value < lo ? 0 : Math.min(Math.floor((value - lo) / width), last));
  }
  if (!edges.edges.every(exact)) return undefined;
  const all = edges.edges.map(Number);
  return (value) => {
    let [low, high] = [0, all.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((all[middle] as number) <= value) low = middle + 1;
      else high = middle;
    }
    return Math.max(low - 1, 0);
  };
}

function lower(edges: Edges, bin: number): bigint {
  return edges.kind === 'uniform' ? edges.lo + edges.width * BigInt(bin) : (edges.edges[bin] as bigint);
}

/** The first cell of each bucket over a grid; undefined if the buckets are not unions of the grid's cells. */
export function groups(coarse: Generalise, grid: Edges): readonly number[] | undefined {
  const starts = coarse.edges.length === 0 ? ofWidth(coarse.width, grid) : ofEdges(coarse.edges, grid);
  return starts?.[0] === 0 ? starts : undefined;
}

function ofWidth(width: bigint, grid: Edges): number[] | undefined {
  if (grid.kind !== 'uniform' || width % grid.width !== 0n || width / grid.width <= 0n) return undefined;
  const step = width / grid.width;
  const starts: number[] = [];
  for (let start = 0n; start < BigInt(grid.count); start += step) starts.push(Number(start));
  return starts;
}

function ofEdges(edges: readonly bigint[], grid: Edges): number[] | undefined {
  const starts: number[] = [];
  for (const edge of edges) {
    const bin = binOf(grid, edge);
    if (lower(grid, bin) !== edge) return undefined;
    starts.push(bin);
  }
  return starts;
}

/** Whether buckets are no coarser than the grid's own bins. */
export function isAsFineAs(coarse: Generalise, grid: Edges): boolean {
  return groups(coarse, grid)?.length === bins(grid);
}
