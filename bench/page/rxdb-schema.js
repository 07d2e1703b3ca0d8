// The schema of measurements in RxDB. Its documents are JSON, so that times are numbers, and they need a primary key.

/** `fields` are the types of the fields beside sensor and time, and `indexes` what is looked up. */
export function schemaOf(fields, indexes) {
  return {
    version: 0,
    primaryKey: { key: "id", fields: ["sensor", "at"], separator: "|" },
    type: "object",
    properties: {
      id: { type: "string", maxLength: 32 },
      sensor: { type: "string", maxLength: 8 },
      at: { type: "integer", minimum: 0, maximum: 4e12, multipleOf: 1 },
      ...fields,
    },
    required: ["id", "sensor", "at", ...Object.keys(fields)],
    indexes,
  };
}

/** Fields of numbers. */
export const numbers = (...names) => Object.fromEntries(names.map((name) => [name, { type: "number" }]));
