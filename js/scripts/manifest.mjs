// The manifest and documents of the published package.

import { join } from "node:path/posix";

/** The URL of the repository, `https://host/owner/name`; empty while it has no public address. */
export const REPOSITORY = process.env.TIMEPAIL_REPOSITORY ?? "";

/**
 * The manifest without the parts that only this repository needs, and with the URL of the repository. It has no scripts, so nothing runs when a user
 * installs the package.
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
 * The text of the document `page` with valid links only: a link to a file that is not among the `files` of the package is changed to a link
 * to the repository, or to plain text while that has no address.
 */
export function withLinks(page, text, files, repository = REPOSITORY) {
  return text.replaceAll(/\[([^\]]*)\]\((?!https?:|#)([^)#]*)(#[^)]*)?\)/g, (link, words, to, anchor = "") => {
    const target = join(page, "..", to);
    if (files.includes(target)) return link;
    return repository ? `[${words}](${repository}/blob/HEAD/${target}${anchor})` : words;
  });
}
