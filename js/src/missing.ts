// Methods that the driver has and this package does not.

/** Makes each of `methods` throw an error that says what to do instead. They are not declared, so TypeScript does not know them. */
export function refuseMissing(prototype: object, methods: Readonly<Record<string, string>>): void {
  for (const [name, instead] of Object.entries(methods)) {
    Object.defineProperty(prototype, name, {
      configurable: true,
      value: () => {
        throw new TypeError(`There is no ${name}() here: ${instead}`);
      },
    });
  }
}
