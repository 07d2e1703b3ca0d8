//! Collators for native tests, in place of a browser's.

use std::cmp::Ordering;
use std::rc::Rc;

use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;

/// ICU falls back for unknown locales; a browser tells which ones it supports.
const LOCALES: [&str; 14] = [
    "da",
    "de",
    "de-u-co-phonebk",
    "en",
    "en-US",
    "es",
    "es-u-co-trad",
    "fr",
    "fr-CA",
    "ja",
    "sv",
    "th",
    "zh",
    "zh-Hans",
];

struct Native(CollatorBorrowed<'static>);

/// A collator as specified by `Env::collator`.
pub fn collator(wanted: &mut super::Collating<'_>) -> Option<Rc<dyn super::Collator>> {
    let locale: Locale = wanted.locale.parse().ok().filter(|_| LOCALES.contains(&wanted.locale))?;
    let mut preferences = CollatorPreferences::from(&locale);
    preferences.numeric_ordering = wanted.numeric.then_some(CollationNumericOrdering::True);
    preferences.case_first = wanted.case_first.map(|first| match first {
        "upper" => CollationCaseFirst::Upper,
        "lower" => CollationCaseFirst::Lower,
        _ => CollationCaseFirst::False,
    });
    let mut options = CollatorOptions::default();
    options.strength = Some(match wanted.sensitivity {
        "base" | "case" => Strength::Primary,
        "accent" => Strength::Secondary,
        _ => Strength::Tertiary,
    });
    options.case_level = Some(if wanted.sensitivity == "case" { CaseLevel::On } else { CaseLevel::Off });
    options.max_variable = Some(MaxVariable::Punctuation);
    options.alternate_handling = wanted.ignores_punctuation.map(|ignored| match ignored {
        true => AlternateHandling::Shifted,
        false => AlternateHandling::NonIgnorable,
    });
    let collator = CollatorBorrowed::try_new(preferences, options).ok()?;
    let resolved = collator.resolved_options();
    wanted.ignores_punctuation = Some(resolved.alternate_handling == AlternateHandling::Shifted);
    wanted.case_first = Some(match resolved.case_first {
        CollationCaseFirst::Upper => "upper",
        CollationCaseFirst::Lower => "lower",
        _ => "false",
    });
    Some(Rc::new(Native(collator)))
}

impl super::Collator for Native {
    fn compare(&self, a: &str, b: &str) -> Ordering {
        self.0.compare(a, b)
    }
}
