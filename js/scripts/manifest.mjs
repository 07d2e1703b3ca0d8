// What npm sees of the package.

/** The manifest without what only this repository needs: no scripts run on the machine of whoever installs the package. */
export function shipped({ scripts, devDependencies, optionalDependencies, ...manifest }) {
  return manifest;
}

/** The files that `exports` names. */
export function named(exports) {
  return [...new Set(Object.values(exports).flatMap((target) => (typeof target === "string" ? [target] : named(target))))].map((file) => file.replace(/^\.\//, ""));
}
