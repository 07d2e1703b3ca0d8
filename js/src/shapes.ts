// Result types: the documents that a projection or a pipeline makes of a schema, and their columns.

import type { Double, Int32, Long } from "bson";
import type { Checked, Insertable, MaybeId, PathValue } from "./schema.js";
import type { Document } from "./types.js";

type IsAny<T> = 0 extends 1 & T ? true : false;
type Simplified<T> = { [K in keyof T]: T[K] };
type Both<U> = (U extends unknown ? (each: U) => void : never) extends (each: infer I) => void ? I : never;

// ------------------------------------------------------------------------------------------------------ projections

/** `T` with nothing but what is at the path `P`. */
type PickPath<T, P extends string> =
  IsAny<T> extends true ? any
  : T extends readonly (infer U)[] ? PickPath<U, P>[]
  : P extends keyof T ? Pick<T, P>
  : P extends `${infer Key}.${infer Rest}`
    ? Key extends keyof T
      ? { [K in Key as K]: PickPath<NonNullable<T[K & keyof T]>, Rest> } extends infer Picked
        ? undefined extends T[Key] ? Partial<Picked> : Picked
        : never
      : unknown
    : unknown;

/** The keys of a projection whose value is one of `V`. */
type KeysOf<P, V> = { [K in keyof P]: P[K] extends V ? K : never }[keyof P] & string;

/** The type of an expression of a projection. It is known for `"$path"` only. */
type Computed<TSchema, E> = E extends `$$${string}` ? any : E extends `$${infer Path}` ? PathValue<TSchema, Path> : any;

type Included<TSchema, P> = Simplified<
  Both<KeysOf<P, 1 | true> extends infer K ? (K extends string ? PickPath<TSchema, K> : never) : never> &
    ("_id" extends keyof TSchema ? (P extends { readonly _id: 0 | false } ? unknown : Pick<TSchema, "_id" & keyof TSchema>) : unknown) & {
      [K in Exclude<keyof P & string, KeysOf<P, 0 | 1 | boolean>> as K extends `${string}.${string}` ? never : K]: Computed<TSchema, P[K]>;
    }
>;

/** Whether `P` names what to leave out. */
type IsExclusion<P> = string extends keyof P ? true : [keyof P] extends ["_id" | KeysOf<P, 0 | false>] ? ([KeysOf<P, 1 | true>] extends [never] ? true : false) : false;

/** The documents that the projection `P` makes of `TSchema`. Fields below an excluded path are not known. */
export type Projected<TSchema, P> =
  IsAny<TSchema> extends true ? any
  : string extends keyof TSchema ? Document
  : string extends keyof P ? Document
  : IsExclusion<P> extends true
    ? Simplified<Omit<TSchema, keyof P | (keyof P & string extends infer K ? (K extends `${infer Key}.${string}` ? Key : never) : never)> & { [K in keyof P & string as K extends `${infer Key}.${string}` ? Key : never]: any }>
    : Included<TSchema, P>;

/** The columns of {@link Projected} documents: all fields that the projection names. If it is an exclusion, every column is optional. */
export type ProjectedColumns<TSchema, P> = IsExclusion<P> extends true ? Partial<Columns<Projected<TSchema, P>>> : Columns<Projected<TSchema, P>>;

// ---------------------------------------------------------------------------------------------------------- pipelines

/** Stages that do not change the shape of documents. */
type Passing = "$match" | "$sort" | "$limit" | "$skip" | "$sample" | "$downsample";

type Accumulated<TSchema, A> =
  A extends { readonly $sum: unknown } | { readonly $count: unknown } ? number
  : A extends { readonly $avg: unknown } ? number | null
  : A extends { readonly $min: infer E } | { readonly $max: infer E } | { readonly $first: infer E } | { readonly $last: infer E } ? Computed<TSchema, E> | null
  : A extends { readonly $push: infer E } | { readonly $addToSet: infer E } ? Exclude<Computed<TSchema, E>, undefined>[]
  : any;

/** The `_id` of a group. */
type GroupKey<TSchema, E> =
  E extends null ? null
  : E extends string ? Computed<TSchema, E>
  : E extends { readonly $dateTrunc: unknown } ? Date
  : E extends object ? (keyof E & string extends `$${string}` ? any : { [K in keyof E]: GroupKey<TSchema, E[K]> })
  : any;

/** What a `$group` makes of `TSchema`. */
export type Grouped<TSchema, G> = { -readonly [K in keyof G]: K extends "_id" ? GroupKey<TSchema, G[K]> : Accumulated<TSchema, G[K]> };

/** What one stage makes of documents; `Document` if it is not known. */
type Staged<TSchema, S> =
  [keyof S] extends [Passing] ? TSchema
  : S extends { readonly $count: infer Name extends string } ? { [K in Name]: number }
  : S extends { readonly $project: infer P } ? Projected<TSchema, P>
  : S extends { readonly $group: infer G } ? Grouped<TSchema, G>
  : Document;

/** The documents that a pipeline makes of `TSchema`, as far as its stages say. */
export type Aggregated<TSchema, Pipeline extends readonly unknown[]> = Pipeline extends readonly [infer First, ...infer Rest]
  ? Aggregated<Staged<TSchema, First>, Rest>
  : Pipeline extends readonly [] ? TSchema : Document;

/** Whether the last stage that decides the fields names all of them. `toColumns` then has them all, even without rows. */
type Names<Pipeline extends readonly unknown[]> = Pipeline extends readonly [...infer Before, infer Last]
  ? keyof Last extends Passing ? Names<Before> : Last extends { readonly $project: unknown } | { readonly $group: unknown } | { readonly $count: unknown } ? true : false
  : false;

/** The columns of a pipeline's documents. */
export type AggregatedColumns<TSchema, Pipeline extends readonly unknown[]> =
  Names<Pipeline> extends true ? Columns<Aggregated<TSchema, Pipeline>> : Partial<Columns<Aggregated<TSchema, Pipeline>>>;

// ---------------------------------------------------------------------------------------------------------- columns

/** Overloaded methods that all columns of numbers have in common. TypeScript cannot call an overloaded method of a union. */
interface Reducible<T> {
  reduce(step: (sum: T, value: T, index: number) => T): T;
  reduce<U>(step: (sum: U, value: T, index: number) => U, initial: U): U;
  reduceRight(step: (sum: T, value: T, index: number) => T): T;
  reduceRight<U>(step: (sum: U, value: T, index: number) => U, initial: U): U;
}

/** A column of numbers. It has `NaN` for a row without the field. */
export type NumberColumn = (Float64Array | Int32Array) & Reducible<number>;

/** A column of 64-bit integers; an array if rows do not have the field. */
export type BigIntColumn<T> = undefined extends T ? (BigInt64Array | (bigint | undefined)[]) & Reducible<bigint | undefined> : BigInt64Array;

/** A column of values that may be null. It is an array if one is null. */
type NullableColumn<Typed, V> = (Typed | (V | null | undefined)[]) & Reducible<V | null | undefined>;

/** The column that `toColumns` returns for a field of type `T`. */
export type ColumnOf<T> =
  IsAny<T> extends true ? any
  : [Exclude<T, undefined | null>] extends [number | Int32 | Double] ? (null extends T ? NullableColumn<Float64Array | Int32Array, number> : NumberColumn)
  : [Exclude<T, undefined | null>] extends [Date] ? (null extends T ? Float64Array | (Date | null | undefined)[] : Float64Array)
  : [Exclude<T, undefined>] extends [bigint | Long] ? BigIntColumn<T>
  : (Exclude<T, undefined> | undefined)[];

/** Columns by field name. */
export type Columns<TSchema = Document> = { [P in keyof TSchema]: ColumnOf<TSchema[P]> };


/** A series, as `toColumns({ by })` returns it. */
export interface Series<TColumns> {
  /** The value at the path `by` that all rows of the series have; `undefined` for rows that have none. */
  key: any;
  /** Their columns, without that of `by`. All have the same length. */
  columns: TColumns;
}

/** A column for {@link Collection.insertColumns}. In a plain array, `undefined` means that the row does not have the field. */
export type ColumnInput =
  | Float64Array
  | Float32Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | BigInt64Array
  | readonly unknown[];

/** The columns that {@link Collection.insertColumns} takes for a field of type `T`: typed arrays for numbers and times, arrays for everything. */
export type ColumnInputOf<T> =
  IsAny<T> extends true ? ColumnInput
  : [Exclude<T, undefined | null>] extends [number | bigint | Int32 | Long | Double] ? Exclude<ColumnInput, readonly unknown[]> | readonly (Insertable<T> | undefined)[]
  : [Exclude<T, undefined | null>] extends [Date] ? Exclude<ColumnInput, readonly unknown[]> | readonly (T | Date | number | undefined)[]
  : readonly (Insertable<T> | undefined)[];

/** Columns by field name. All have the same length. */
export type ColumnsInput<TSchema = Document> = Checked<
  TSchema,
  { readonly [P in keyof MaybeId<TSchema>]?: ColumnInputOf<MaybeId<TSchema>[P]> | undefined },
  Readonly<Record<string, ColumnInput | undefined>>
>;
