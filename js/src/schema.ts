// What a schema allows: its paths, and the filters, sorts, projections, updates and measurements that name them.

import type { BSONRegExp, Decimal128, Double, Int32, Long } from "bson";
import type { Document, SortDirection } from "./types.js";

/** Types without paths below them. */
type Leaf = string | number | bigint | boolean | symbol | null | undefined | Date | RegExp | Uint8Array | { readonly _bsontype: string } | ((...args: any[]) => unknown);

type IsAny<T> = 0 extends 1 & T ? true : false;

/** `"no"` for a known schema. For an unresolved type parameter, TypeScript defers the decision and treats `"yes"` as possible. */
type MayBeAny<T> = [0] extends [1 & T] ? "yes" : "no";

/**
 * `Strict` for a known schema, `Loose` for a type parameter. Whatever is written for `T extends { at: Date }` must be valid for every `T`, which TypeScript could not
 * check.
 */
export type Checked<TSchema, Strict, Loose = Document> = [MayBeAny<TSchema>] extends ["no"] ? Strict : Loose;

/** The paths of `T`, down to eight levels, as in the driver: `"temp"`, `"station.id"`, `"tags.0"`. */
export type NestedPaths<T, Depth extends 0[] = []> =
  IsAny<T> extends true ? string
  : Depth["length"] extends 8 ? never
  : T extends Leaf ? never
  : T extends readonly (infer U)[] ? `${number}` | NestedPaths<U, [...Depth, 0]> | `${number}.${NestedPaths<U, [...Depth, 0]>}`
  : T extends ReadonlyMap<string, unknown> ? string
  : T extends object ? { [K in keyof T & string]: K | `${K}.${NestedPaths<NonNullable<T[K]>, [...Depth, 0]>}` }[keyof T & string]
  : string;

/** The type of the value at the path `P` of `T`. */
export type PathValue<T, P extends string> =
  IsAny<T> extends true ? any
  : T extends readonly (infer U)[]
    ? P extends `${number}` ? U : P extends `${number}.${infer Rest}` ? PathValue<U, Rest> : PathValue<U, P>
  : P extends keyof T ? T[P]
  : P extends `${infer Key}.${infer Rest}` ? (Key extends keyof T ? PathValue<NonNullable<T[Key]>, Rest> : any)
  : any;

/** `TSchema` with the `_id` that every measurement may have. */
export type MaybeId<TSchema> = TSchema & { _id?: unknown };

type Path<TSchema> = NestedPaths<MaybeId<TSchema>>;

// ---------------------------------------------------------------------------------------------------------- inserts

/** What may be stored where the schema says `T`: for a `number` also an `Int32`, `Long` or `Double`, for a `bigint` also a `Long`, and the other way round. An optional field may be `undefined`, which leaves it out. */
export type Insertable<T> =
  IsAny<T> extends true ? any
  : T extends number | Int32 | Double ? T | number | Int32 | Long | Double
  : T extends bigint | Long ? T | bigint | Long
  : T extends Leaf ? T
  : T extends readonly (infer U)[] ? T | readonly Insertable<U>[]
  : T extends object ? { [K in keyof T]: Insertable<T[K]> | ({} extends Pick<T, K> ? undefined : never) }
  : T;

/** A measurement to insert: what the schema says, with numbers of any kind. */
export type Measurement<TSchema> = TSchema | MaybeId<Insertable<TSchema>>;

// ---------------------------------------------------------------------------------------------------------- filters

/** A value that a field can be compared with: its type, or the type of its elements. A number can also be given as `Int32`, `Long`, `Double` or `Decimal128`. */
export type FilterValue<T> =
  | T
  | (T extends readonly (infer U)[] ? U | readonly U[] : never)
  | (T extends number | bigint | Int32 | Long | Double | Decimal128 ? number | bigint | Int32 | Long | Double | Decimal128 : never)
  | (T extends string ? RegExp | BSONRegExp : never)
  | null
  | undefined;

/** The operators that a filter can apply to one field. */
export interface FilterOperators<T> {
  $eq?: FilterValue<T>;
  $ne?: FilterValue<T>;
  $gt?: FilterValue<T>;
  $gte?: FilterValue<T>;
  $lt?: FilterValue<T>;
  $lte?: FilterValue<T>;
  $in?: readonly FilterValue<T>[];
  $nin?: readonly FilterValue<T>[];
  $not?: FilterOperators<T> | RegExp;
  $exists?: boolean;
  $type?: number | string | readonly (number | string)[];
  $mod?: readonly [number, number];
  $regex?: RegExp | BSONRegExp | string;
  $options?: string;
  $all?: readonly unknown[];
  $elemMatch?: Document;
  $size?: number;
  $geoWithin?: Document;
  $geoIntersects?: Document;
  $bitsAllClear?: unknown;
  $bitsAllSet?: unknown;
  $bitsAnyClear?: unknown;
  $bitsAnySet?: unknown;
}

/** The condition on one field: a value that it must equal, or operators. */
export type Condition<T> = FilterValue<T> | FilterOperators<T extends readonly (infer U)[] ? T | U : T>;

/** The operators at the top of a filter. */
export interface RootFilterOperators<TSchema> {
  $and?: readonly Filter<TSchema>[];
  $or?: readonly Filter<TSchema>[];
  $nor?: readonly Filter<TSchema>[];
  $expr?: unknown;
  $jsonSchema?: Document;
  $comment?: unknown;
}

type StrictFilter<TSchema> = { [P in Path<TSchema>]?: Condition<PathValue<MaybeId<TSchema>, P>> } & RootFilterOperators<TSchema>;

/**
 * A query. Fields and dotted paths such as `"station.id"` are checked against the schema. Where the schema is a type parameter or `Document`, every field is allowed.
 */
export type Filter<TSchema = Document> = Checked<TSchema, StrictFilter<TSchema>>;

// ------------------------------------------------------------------------------------------- sorts, projections, updates

type StrictSort<P extends string> =
  | P
  | readonly P[]
  | { readonly [K in P]?: SortDirection }
  | ReadonlyMap<P, SortDirection>
  | readonly (readonly [P, SortDirection])[]
  | readonly [P, SortDirection];

/** A sort order by fields and dotted paths of the schema: see {@link Sort}. */
export type SortOf<TSchema> = Checked<TSchema, StrictSort<Path<TSchema>>, StrictSort<string>>;

/** A value of a projection: whether the field is shown, or an expression. */
export type ProjectionValue = 0 | 1 | boolean | string | Document;

/** Which fields and dotted paths of the schema to show. Others may be added if they are computed. */
export type Projection<TSchema> = Checked<TSchema, { readonly [P in Path<TSchema>]?: ProjectionValue } & { readonly [computed: string]: ProjectionValue | undefined }>;

/** The projection `P`, without the names that are neither paths of the schema nor computed. If `P` may have any name, because it is not a literal, it is not checked. */
export type CheckedProjection<TSchema, P> =
  string extends keyof P ? unknown : Checked<TSchema, { readonly [K in keyof P]: K extends Path<TSchema> ? ProjectionValue : string | Document }>;

/** `Options` with a projection whose names are checked. */
export type WithProjection<Options, TSchema, P> = Omit<Options, "projection"> & { projection?: (P & CheckedProjection<TSchema, P>) | undefined };

/** The paths of `TSchema`; any string for a type parameter. */
export type PathOf<TSchema> = Checked<TSchema, Path<TSchema>, string>;

/** The values that `distinct` finds at a path: an array counts as its elements. */
export type DistinctValue<TSchema, P extends string> = PathValue<TSchema, P> extends infer V ? (V extends readonly (infer U)[] ? U : Exclude<V, undefined>) : never;

/** Paths with `$[]` and `$[name]` are not checked. */
type Positional = `${string}.$${string}`;

type Changes<TSchema> = { readonly [P in Path<TSchema>]?: Insertable<PathValue<TSchema, P>> | null } & { readonly [P in Positional]?: unknown };
type Named<TSchema, V> = { readonly [P in Path<TSchema>]?: V } & { readonly [P in Positional]?: V };

interface StrictUpdate<TSchema> {
  $set?: Changes<TSchema>;
  $unset?: Named<TSchema, "" | true | 1>;
  $min?: Changes<TSchema>;
  $max?: Changes<TSchema>;
  $inc?: Named<TSchema, number | bigint | Int32 | Long | Double | Decimal128>;
  $mul?: Named<TSchema, number | bigint | Int32 | Long | Double | Decimal128>;
  $rename?: Named<TSchema, string>;
  $currentDate?: Named<TSchema, true | { $type: "date" | "timestamp" }>;
  $addToSet?: Named<TSchema, unknown>;
  $push?: Named<TSchema, unknown>;
  $pull?: Named<TSchema, unknown>;
  $pullAll?: Named<TSchema, readonly unknown[]>;
  $pop?: Named<TSchema, 1 | -1>;
  $bit?: Named<TSchema, Document>;
  $setOnInsert?: Changes<TSchema>;
}

/** A change of metadata, or a pipeline that makes it. Paths and values are checked against the schema. */
export type UpdateFilter<TSchema = Document> = Checked<TSchema, StrictUpdate<TSchema> | readonly Document[]>;
