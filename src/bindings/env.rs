//! The host's clock, random source, regular expressions, collators, time zones, and doubles as text (I7).

use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::rc::Rc;

use js_sys::{Function, Object, Promise, Reflect};

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::env::{Collating, Collator, CompiledRegex, Env, Loading, Match, TimeZone, Turn, offset_ms};

/// `Date.now`, `performance.now`, `crypto.getRandomValues`, `RegExp`, `Intl.Collator` and `Intl.DateTimeFormat`.
pub struct HostEnv {
    load: Function,
    turn: Option<Function>,
    is_whole: Rc<Cell<bool>>,
}

impl HostEnv {
    /// The host. `load` returns a promise of the second half of the module; the promise is kept once it has resolved.
    /// `turn` returns a promise that resolves when the event loop has had a turn.
    pub fn new(load: Function, turn: Option<Function>) -> HostEnv {
        HostEnv { load, turn, is_whole: Rc::default() }
    }

    /// True if the second half of the module is loaded.
    pub fn is_whole(&self) -> bool {
        self.is_whole.get()
    }

    /// Waits for the second half of the module.
    ///
    /// Errors: whatever `load` rejects with.
    pub fn load(&self) -> impl Future<Output = Result<(), JsValue>> + use<> {
        let (load, is_whole) = (self.load.clone(), Rc::clone(&self.is_whole));
        async move {
            if !is_whole.get() {
                JsFuture::from(Promise::from(load.call0(&JsValue::UNDEFINED)?)).await?;
                is_whole.set(true);
            }
            Ok(())
        }
    }
}

impl Env for HostEnv {
    fn complete(&self) -> Loading {
        let loading = self.load();
        Box::pin(async { loading.await.map_err(|error| js_sys::Error::from(error).message().into()) })
    }

    fn now_ms(&self) -> i64 {
        // Whole milliseconds, far below 2^53.
        #[allow(clippy::cast_possible_truncation)]
        let now = js_sys::Date::now() as i64;
        now
    }

    fn elapsed_ms(&self) -> f64 {
        elapsed()
    }

    fn turn(&self) -> Option<Turn> {
        let turn = Promise::from(self.turn.as_ref()?.call0(&JsValue::UNDEFINED).ok()?);
        Some(Box::pin(async {
            // However it ends, it has ended.
            let _ = JsFuture::from(turn).await;
        }))
    }

    fn random_u64(&self) -> u64 {
        // Every host that this module runs in has a random source; without one, ids still differ by time.
        #[allow(clippy::cast_sign_loss)]
        getrandom::u64().unwrap_or_else(|_| self.now_ms() as u64 ^ js_sys::Math::random().to_bits())
    }

    // Loaded later.
    fn random_double(&self) -> f64 {
        js_sys::Math::random()
    }

    fn regex(&self, pattern: &str, ignores_case: bool) -> Result<Rc<dyn CompiledRegex>, String> {
        // Loaded by now: only operators of the second half look for matches.
        let (unicode, plain) = if ignores_case { ("iu", "i") } else { ("u", "") };
        // With `u` a pattern matches whole characters, not UTF-16 units, but some old syntax is an error.
        match RegExp::new(pattern, unicode).or_else(|_| RegExp::new(pattern, plain)) {
            Ok(regex) => Ok(Rc::new(HostRegex { regex, search: OnceCell::new() })),
            Err(error) => Err(js_sys::Error::from(error).message().into()),
        }
    }

    // Loaded later.
    fn double(&self, number: &str) -> f64 {
        js_sys::JSON::parse(number).ok().and_then(|number| number.as_f64()).unwrap_or(f64::NAN)
    }

    // Loaded later.
    fn digits(&self, x: f64) -> String {
        js_sys::JSON::stringify(&x.into()).map(String::from).unwrap_or_default()
    }

    fn time_zone(&self, name: &str) -> Option<Rc<dyn TimeZone>> {
        // Loaded by now: only operators of the second half ask for time zones.
        Some(Rc::new(time_zone(name)?))
    }

    fn collator(&self, wanted: &mut Collating<'_>) -> Option<Rc<dyn Collator>> {
        // JavaScriptCore omits settings that are the defaults of both languages involved.
        let upper = matches!(
            wanted.locale.as_bytes(),
            [b'd', b'a'] | [b'm', b't'] | [b'd', b'a', b'-', ..] | [b'm', b't', b'-', ..]
        );
        let case_first = wanted.case_first.or(upper.then_some("upper"));
        let case = CASES.iter().find(|(case, _)| Some(*case) == case_first);
        let punctuation = PUNCTUATION.iter().find(|(ignored, _)| Some(*ignored) == wanted.ignores_punctuation);
        let options = [
            "{\"sensitivity\":\"",
            wanted.sensitivity,
            if wanted.numeric { "\",\"numeric\":true" } else { "\",\"numeric\":false" },
            case.map_or("", |(_, option)| option),
            punctuation.map_or("", |(_, option)| option),
            "}",
        ];
        let collator = IntlCollator::new(wanted.locale, &js_sys::JSON::parse(&options.concat()).ok()?).ok()?;
        let resolved = String::from(js_sys::JSON::stringify(&collator.resolved_options()).ok()?);
        let says = |text: &str| resolved.as_bytes().windows(text.len()).any(|part| part == text.as_bytes());
        wanted.case_first = CASES.iter().find(|(_, option)| says(option)).map(|(case, _)| *case);
        wanted.ignores_punctuation = Some(says(PUNCTUATION[0].1));
        // A different locale in the answer means that the host does not have the one asked for.
        if says(&["\"locale\":\"", wanted.locale, "\""].concat()) { Some(Rc::new(collator)) } else { None }
    }
}

/// A time zone by name. `Intl.DateTimeFormat` is looked up by name, so that the JavaScript glue need not import it.
#[inline(never)]
// Loaded later.
fn time_zone(name: &str) -> Option<HostZone> {
    let get = |object: &JsValue, name: &str| Reflect::get(object, &name.into()).ok();
    let options = Object::new();
    Reflect::set(&options, &"timeZone".into(), &name.into()).ok()?;
    Reflect::set(&options, &"timeZoneName".into(), &"longOffset".into()).ok()?;
    let make = Function::from(get(&get(&js_sys::global(), "Intl")?, "DateTimeFormat")?);
    let format = make.call2(&JsValue::UNDEFINED, &"en-US".into(), &options).ok()?;
    Some(HostZone(get(&format, "format")?.into()))
}

/// A function that formats a date together with the zone's offset: `1/1/2020, GMT-05:00`.
struct HostZone(Function);

impl TimeZone for HostZone {
    // Loaded later.
    fn offset_ms(&self, at_ms: i64) -> i64 {
        #[allow(clippy::cast_precision_loss)]
        let written = self.0.call1(&JsValue::UNDEFINED, &JsValue::from_f64(at_ms as f64));
        let written = written.ok().and_then(|text| text.as_string()).unwrap_or_default();
        written.as_bytes().rsplit(|byte| *byte == b'T').next().and_then(offset_ms).unwrap_or_default()
    }
}

/// The values of `caseFirst`, as JSON text to append.
const CASES: [(&str, &str); 3] = [
    ("upper", ",\"caseFirst\":\"upper\""),
    ("lower", ",\"caseFirst\":\"lower\""),
    ("false", ",\"caseFirst\":\"false\""),
];

/// The values of `ignorePunctuation`, as JSON text to append.
const PUNCTUATION: [(bool, &str); 2] = [(true, ",\"ignorePunctuation\":true"), (false, ",\"ignorePunctuation\":false")];

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn elapsed() -> f64;
}

#[wasm_bindgen]
extern "C" {
    /// `RegExp` with a catching constructor: an uncaught exception would leave the caller's promise unresolved.
    type RegExp;
    #[wasm_bindgen(constructor, catch)]
    fn new(pattern: &str, flags: &str) -> Result<RegExp, JsValue>;
    #[wasm_bindgen(method)]
    fn test(this: &RegExp, text: &str) -> bool;
}

/// A regular expression, and what `find` makes once for all texts: to make it for each would take longer than to search a text.
struct HostRegex {
    regex: RegExp,
    search: OnceCell<Option<TextSearch>>,
}

struct TextSearch {
    /// With the flag `g`, without which a search does not continue after the previous match.
    of_all: RegExp,
    execute: Function,
    index: JsValue,
    length: JsValue,
}

impl TextSearch {
    #[inline(never)]
    // Loaded later.
    fn of(regex: &RegExp) -> Option<TextSearch> {
        let [source, flags] = ["source", "flags"].map(|name| get(regex, &name.into()).as_string().unwrap_or_default());
        let execute = Function::from(get(regex, &"exec".into()));
        let of_all = RegExp::new(&source, &(flags + "g")).ok()?;
        Some(TextSearch { of_all, execute, index: "index".into(), length: "length".into() })
    }
}

#[inline(never)]
// Loaded later.
fn get(object: &JsValue, name: &JsValue) -> JsValue {
    Reflect::get(object, name).unwrap_or_default()
}

impl CompiledRegex for HostRegex {
    fn is_match(&self, text: &str) -> bool {
        self.regex.test(text)
    }

    // Loaded later.
    fn find(&self, text: &str, all: bool) -> Vec<Match> {
        let mut found = Vec::new();
        let Some(search) = self.search.get_or_init(|| TextSearch::of(&self.regex)) else { return found };
        let (regex, whole) = (if all { &search.of_all } else { &self.regex }, JsValue::from(text));
        while let Ok(result) = search.execute.call1(regex, &whole)
            && !result.is_null()
        {
            let number = |name: &JsValue| get(&result, name).as_f64().unwrap_or_default();
            let start = number(&search.index);
            let mut units = 0.0;
            let before = text.chars().take_while(|letter| {
                units += letter.len_utf16() as f64;
                units <= start
            });
            let at = before.count();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let groups: Vec<_> =
                (0..number(&search.length) as u32).map(|group| get(&result, &group.into()).as_string()).collect();
            if !all {
                found.push(Match { at, groups });
                break;
            }
            // An empty match would be found again at the same place.
            if groups.first().is_some_and(|all| all.as_deref() == Some("")) {
                let width = text.chars().nth(at).map_or(1, char::len_utf16);
                let _ = Reflect::set(regex, &"lastIndex".into(), &(start + width as f64).into());
            }
            found.push(Match { at, groups });
        }
        found
    }
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = Intl, js_name = Collator)]
    type IntlCollator;
    #[wasm_bindgen(constructor, catch, js_namespace = Intl, js_class = "Collator")]
    fn new(locale: &str, options: &JsValue) -> Result<IntlCollator, JsValue>;
    #[wasm_bindgen(method, js_name = resolvedOptions)]
    fn resolved_options(this: &IntlCollator) -> JsValue;
    /// Negative, positive or exactly 0.
    #[wasm_bindgen(method)]
    fn compare(this: &IntlCollator, a: &str, b: &str) -> i32;
}

impl Collator for IntlCollator {
    fn compare(&self, a: &str, b: &str) -> Ordering {
        IntlCollator::compare(self, a, b).cmp(&0)
    }
}
