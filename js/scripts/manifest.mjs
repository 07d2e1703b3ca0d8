// What npm sees of the package.

import { join } from "node:path/posix";

/** Where the repository is, as `https://host/owner/name`; empty as long as it has no public address. */
export const REPOSITORY = process.env.TIMEPAIL_REPOSITORY ?? "";

/**
 * The manifest without what only this repository needs, and with its addresses. No scripts run on the machine of whoever installs the
 * package.
 */
export function shipped({ scripts, devDependencies, optionalDependencies, ...manifest }, repository = REPOSITORY) {
  if (!repository) return manifest;
  const addresses = {
    homepage: `${repository}#readme`,
    bugs: { url: `${repository}/issues` },
    repository: { type: "git", url: `git+${repository}.git` },
  };
  return { ...manifest, ...addresses };
}

/** The files that `exports` names. */
export function named(exports) {
  return [...new Set(Object.values(exports).flatMap((target) => (typeof target === "string" ? [target] : named(target))))].map((file) => file.replace(/^\.\//, ""));
}

/**
 * The text of the document `page`, with links only to what is there: a link to a file that the package, which has `files`, lacks leads
 * to the repository, or is mere text as long as that has no address.
 */
export function withLinks(page, text, files, repository = REPOSITORY) {
  return text.replaceAll(/\[([^\]]*)\]\((?!https?:|#)([^)#]*)(#[^)]*)?\)/g, (link, words, to, anchor = "") => {
    const target = join(page, "..", to);
    if (files.includes(target)) return link;
    return repository ? `[${words}](${repository}/blob/HEAD/${target}${anchor})` : words;
  });
}
