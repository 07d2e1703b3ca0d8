// Defines pairs of shapes, runs a shape, and compares the answers of two shapes.

/**
 * A shape is a pipeline, `{ columns: pipeline }` for its rows as columns, `{ count: filter }`, `{ distinct: path }`, or `{ each: { name: pipeline } }`. `{ of: name, shape }` is a shape over another collection than `points`.
 *
 * `same` is what must be equal: `"all"`, `"values"` (all but `_id`), or `"none"` where the two only have the same work. `per` divides both times, for shapes
 * whose cost is that of what they return. `loop` computes the answer of `second` from typed arrays. It is compared even with `"none"`.
 */
export const pair = (name, first, second, { same = "values", per, loop } = {}) => ({ name, first, second, same, per, loop });

/** A copy of a function, which the compiler treats as a new one. So a loop that takes its computation as a function is compiled for that function alone. */
export const copied = (work) => new Function(`return ${work}`)();

/** The rows of a shape's answer. */
export async function ask(collections, shape, of = "points") {
  if (shape.of) return ask(collections, shape.shape, shape.of);
  const points = collections[of];
  if (Array.isArray(shape)) return points.aggregate(shape).toArray();
  if (shape.columns) return [await points.aggregate(shape.columns).toColumns()];
  if (shape.count) return [{ count: await points.countDocuments(shape.count) }];
  if (shape.distinct) return (await points.distinct(shape.distinct)).map((_id) => ({ _id }));
  const answers = {};
  for (const [name, pipeline] of Object.entries(shape.each)) answers[name] = await points.aggregate(pipeline).toArray();
  return [answers];
}

/** All values of an answer, by the path of their field; the order of rows and elements does not count. */
function valuesOf(rows, withIds) {
  const found = new Map();
  const take = (value, path) => {
    if (Array.isArray(value) || ArrayBuffer.isView(value)) for (const one of value) take(one, path);
    else if (typeof value === "object" && value !== null && !(value instanceof Date)) {
      for (const [name, one] of Object.entries(value)) if (withIds || name !== "_id") take(one, `${path}.${name}`);
    } else {
      if (!found.has(path)) found.set(path, []);
      found.get(path).push(value instanceof Date ? value.getTime() : typeof value === "bigint" ? Number(value) : value);
    }
  };
  take(rows, "");
  for (const values of found.values()) values.sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1));
  return found;
}

const near = (a, b) => a === b || (typeof a === "number" && typeof b === "number" && Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b)));

/** The first difference as a sentence, or `undefined`. */
export function difference(wanted, found, same) {
  if (same === "none") return undefined;
  const [left, right] = [valuesOf(wanted, same === "all"), valuesOf(found, same === "all")];
  for (const path of new Set([...left.keys(), ...right.keys()])) {
    const [a, b] = [left.get(path) ?? [], right.get(path) ?? []];
    if (a.length !== b.length) return `${path}: ${b.length} values, not ${a.length}`;
    const at = a.findIndex((value, i) => !near(value, b[i]));
    if (at >= 0) return `${path}, value ${at} in order: ${b[at]}, not ${a[at]}`;
  }
  return undefined;
}
