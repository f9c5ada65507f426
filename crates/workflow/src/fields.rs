//! Reads the fields of one TOML table, and collects every fault on the way.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Document, Field};
use crate::suggest::nearest;
use crate::text::{clipped, is_name, printable, to_json, type_name};
use crate::url::HttpUrl;
use crate::value::{InvalidValue, JsonPointer, Rate, parse_duration, parse_size};

/// Fields whose faults would make the checks of the graph report misleading faults.
const STRUCTURAL: &[&str] = &[
    "name", "input", "inputs", "output", "kind", "strategy", "by", "k", "n", "start", "end",
    "chunk", "fan_out", "writers",
];

/// Maximum length of a list, and of a free-form table.
pub(crate) const MAX_LIST: usize = 1024;

/// Collects faults.
pub(crate) struct Faults {
    pub(crate) document: Document,
    pub(crate) list: Vec<Diagnostic>,
    /// Whether a fault was found that would make the checks of the graph misleading.
    pub(crate) graph_unreliable: bool,
}

/// Reader of one table; it records which fields were read.
pub(crate) struct Fields<'d, 't> {
    faults: &'d mut Faults,
    at: Field,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
}

// === impl Faults ===

impl Faults {
    /// Maximum number of faults listed; the rest are dropped.
    pub(crate) const MAX: usize = 200;

    pub(crate) fn push(
        &mut self,
        code: Code,
        field: &Field,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.list.len() < Self::MAX {
            self.list
                .push(Diagnostic::new(&self.document, code, field, message, help));
        } else {
            self.graph_unreliable = true;
        }
    }
}

// === impl Fields ===

impl<'d, 't> Fields<'d, 't> {
    pub(crate) fn new(faults: &'d mut Faults, at: Field, table: &'t DeTable<'t>) -> Self {
        Self {
            faults,
            at,
            table,
            known: Vec::new(),
        }
    }

    pub(crate) fn faults(&mut self) -> &mut Faults {
        self.faults
    }

    /// Reports every field of the table that was not read.
    pub(crate) fn finish(self) {
        for (key, _) in self.table {
            let name = key.get_ref().as_ref();
            if self.known.contains(&name) {
                continue;
            }
            let help = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if self.known.is_empty() => "remove it".to_owned(),
                None => format!("remove it, or use one of: {}", self.known.join(", ")),
            };
            let field = self.at.child(&printable(name));
            self.faults.document.mark(&field, key.span());
            let message = format!("there is no field `{}` here", printable(name));
            self.faults.push(Code::UnknownField, &field, message, help);
            self.faults.graph_unreliable = true;
        }
    }

    /// The value of a field; records its position and that the field exists.
    fn take(&mut self, key: &'static str) -> Option<&'t DeValue<'t>> {
        self.known.push(key);
        let value = self.table.get(key)?;
        self.faults.document.mark(&self.at.child(key), value.span());
        Some(value.get_ref())
    }

    pub(crate) fn bad(
        &mut self,
        code: Code,
        key: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let field = if key.is_empty() {
            self.at.clone()
        } else {
            self.at.child(key)
        };
        self.faults.graph_unreliable |= STRUCTURAL.contains(&key);
        self.faults.push(code, &field, message, help);
    }

    pub(crate) fn missing(&mut self, key: &'static str, example: &str) {
        let field = self.at.clone();
        self.faults.graph_unreliable = true;
        self.faults.push(
            Code::MissingField,
            &field,
            format!("the field `{key}` is missing"),
            format!("add `{key} = {example}`"),
        );
    }

    /// Reports a missing field whose value is one of a few words.
    pub(crate) fn missing_word(&mut self, key: &'static str, words: &str) {
        let field = self.at.clone();
        self.faults.graph_unreliable = true;
        let message = format!("the field `{key}` is missing");
        self.faults.push(
            Code::MissingField,
            &field,
            message,
            format!("add `{key}`, one of: {words}"),
        );
    }

    fn wrong_type(&mut self, key: &str, value: &DeValue<'_>, wanted: &str, example: &str) {
        let message = format!("{} stands where {wanted} is expected", type_name(value));
        self.bad(
            Code::WrongType,
            key,
            message,
            format!("write it as in `{key} = {example}`"),
        );
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(crate) fn is_table(&self, key: &str) -> bool {
        self.table
            .get(key)
            .is_some_and(|value| value.get_ref().is_table())
    }

    pub(crate) fn is_string(&self, key: &str) -> bool {
        self.table
            .get(key)
            .is_some_and(|value| value.get_ref().is_str())
    }

    pub(crate) fn string(&mut self, key: &'static str, example: &str) -> Option<String> {
        match self.take(key)? {
            DeValue::String(text) => Some(text.to_string()),
            other => {
                self.wrong_type(key, other, "a string", example);
                None
            }
        }
    }

    pub(crate) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        match self.take(key)? {
            DeValue::Boolean(value) => Some(*value),
            other => {
                self.wrong_type(key, other, "`true` or `false`", "true");
                None
            }
        }
    }

    /// A whole number in `range`.
    pub(crate) fn number(&mut self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let value = self.take(key)?;
        let DeValue::Integer(integer) = value else {
            self.wrong_type(
                key,
                value,
                "a whole number",
                &range.start().max(&1).to_string(),
            );
            return None;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.out_of_range(key, &integer.to_string(), range.start(), range.end());
        }
        number
    }

    /// A whole number, with or without a sign.
    pub(crate) fn integer(&mut self, key: &'static str) -> Option<i64> {
        let value = self.take(key)?;
        let DeValue::Integer(integer) = value else {
            self.wrong_type(key, value, "a whole number", "-16");
            return None;
        };
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        if number.is_none() {
            self.out_of_range(key, &integer.to_string(), i64::MIN, i64::MAX);
        }
        number
    }

    pub(crate) fn number32(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        self.number(key, wide)
            .and_then(|number| u32::try_from(number).ok())
    }

    /// A number in `range`, with or without a fraction.
    pub(crate) fn float(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.take(key)?;
        let text = match value {
            DeValue::Float(float) => float.as_str(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            other => {
                self.wrong_type(key, other, "a number", "2.0");
                return None;
            }
        };
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            self.out_of_range(key, text, range.start(), range.end());
        }
        number
    }

    fn out_of_range<T: std::fmt::Display>(&mut self, key: &str, text: &str, low: T, high: T) {
        let shown: String = text.chars().take(40).collect();
        self.bad(
            Code::OutOfRange,
            key,
            format!("{shown} is not from {low} to {high}"),
            format!("give a number from {low} to {high}"),
        );
    }

    /// A duration of at least a millisecond.
    pub(crate) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        let help = "write a whole number and ms, s, m or h, as in \"30s\"";
        let duration = self.parsed(key, Code::BadDuration, "\"30s\"", help, parse_duration)?;
        if duration.is_zero() {
            self.bad(
                Code::OutOfRange,
                key,
                "a duration of nothing",
                "give at least \"1ms\"",
            );
            return None;
        }
        Some(duration)
    }

    /// A size of at least a byte.
    pub(crate) fn size(&mut self, key: &'static str) -> Option<u64> {
        let help =
            "write a whole number and B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, as in \"8GiB\"";
        let size = self.parsed(key, Code::BadSize, "\"8GiB\"", help, parse_size)?;
        if size == 0 {
            self.bad(
                Code::OutOfRange,
                key,
                "a size of nothing",
                "give at least \"1B\"",
            );
            return None;
        }
        Some(size)
    }

    pub(crate) fn rate(&mut self, key: &'static str) -> Option<Rate> {
        let help = "write a whole number from 1 and /s, /m or /h, as in \"100/s\"";
        self.parsed(key, Code::BadRate, "\"100/s\"", help, str::parse)
    }

    pub(crate) fn url(&mut self, key: &'static str) -> Option<HttpUrl> {
        let help = "write http://HOST:PORT/PATH, or https, without a user";
        let example = "\"https://example.org/proofs\"";
        self.parsed(key, Code::BadUrl, example, help, HttpUrl::try_new)
    }

    pub(crate) fn pointer(&mut self, key: &'static str) -> Option<JsonPointer> {
        let help =
            "write a JSON pointer (RFC 6901), as in \"/group_id\"; \"\" is the whole payload";
        self.parsed(
            key,
            Code::BadPointer,
            "\"/group_id\"",
            help,
            JsonPointer::try_new,
        )
    }

    fn parsed<T>(
        &mut self,
        key: &'static str,
        code: Code,
        example: &str,
        help: &str,
        parse: impl FnOnce(&str) -> Result<T, InvalidValue>,
    ) -> Option<T> {
        let text = self.string(key, example)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.bad(code, key, clipped(&error.to_string()), help);
                None
            }
        }
    }

    /// A name usable in a bus key: `[a-z0-9][a-z0-9_-]{0,62}`; without `_` unless `underscores`.
    pub(crate) fn token(
        &mut self,
        key: &'static str,
        example: &str,
        underscores: bool,
    ) -> Option<String> {
        let text = self.string(key, example)?;
        let field = self.at.child(key);
        self.valid_name(&field, text, underscores)
    }

    fn valid_name(&mut self, field: &Field, text: String, underscores: bool) -> Option<String> {
        if is_name(&text, underscores) {
            return Some(text);
        }
        let also = if underscores {
            "`-` and `_`"
        } else {
            "and `-`"
        };
        let help = format!("use 1 to 63 of a-z, 0-9{also}, beginning with a letter or a digit");
        self.faults.graph_unreliable = true;
        self.faults.push(
            Code::BadName,
            field,
            clipped(&format!("{text:?} is not a name")),
            help,
        );
        None
    }

    /// A list of strings.
    pub(crate) fn strings(&mut self, key: &'static str, example: &str) -> Option<Vec<String>> {
        match self.take(key)? {
            DeValue::Array(items) => self.items(key, items, example),
            other => {
                self.wrong_type(key, other, "a list of strings", example);
                None
            }
        }
    }

    /// A string, or a list of them.
    pub(crate) fn one_or_more(&mut self, key: &'static str, example: &str) -> Option<Vec<String>> {
        match self.is_string(key) {
            true => self.string(key, example).map(|text| vec![text]),
            false => self.strings(key, example),
        }
    }

    /// A list of names, or (if `single`) one name.
    pub(crate) fn names(
        &mut self,
        key: &'static str,
        example: &str,
        single: bool,
    ) -> Option<Vec<String>> {
        let (names, list) = match self.take(key)? {
            DeValue::Array(items) => (self.items(key, items, example)?, true),
            DeValue::String(name) if single => (vec![name.to_string()], false),
            other => {
                let wanted = if single {
                    "a string or a list of strings"
                } else {
                    "a list of strings"
                };
                self.wrong_type(key, other, wanted, example);
                return None;
            }
        };
        let field = self.at.child(key);
        let wanted = names.len();
        let valid: Vec<String> = names
            .into_iter()
            .enumerate()
            .filter_map(|(index, name)| {
                let field = if list {
                    field.item(index)
                } else {
                    field.clone()
                };
                self.valid_name(&field, name, true)
            })
            .collect();
        (valid.len() == wanted).then_some(valid)
    }

    fn items(
        &mut self,
        key: &str,
        items: &'t [Spanned<DeValue<'t>>],
        example: &str,
    ) -> Option<Vec<String>> {
        if items.len() > MAX_LIST {
            let message = format!("a list of {} is longer than {MAX_LIST}", items.len());
            self.bad(Code::TooLarge, key, message, "shorten it");
            return None;
        }
        let field = self.at.child(key);
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let place = field.item(index);
            self.faults.document.mark(&place, item.span());
            match item.get_ref() {
                DeValue::String(text) => texts.push(text.to_string()),
                other => {
                    self.faults.graph_unreliable |= STRUCTURAL.contains(&key);
                    let message = format!("{} stands where a string is expected", type_name(other));
                    let help = format!("write it as in `{key} = {example}`");
                    self.faults.push(Code::WrongType, &place, message, help);
                }
            }
        }
        (texts.len() == items.len()).then_some(texts)
    }

    /// A table inside this one.
    pub(crate) fn table(&mut self, key: &'static str, example: &str) -> Option<Fields<'_, 't>> {
        match self.take(key)? {
            DeValue::Table(table) => Some(Fields::new(self.faults, self.at.child(key), table)),
            other => {
                self.wrong_type(key, other, "a table", example);
                None
            }
        }
    }

    /// Free-form keys with whole numbers.
    pub(crate) fn counts(&mut self, key: &'static str) -> Option<Vec<(String, u32)>> {
        let Some(DeValue::Table(table)) = self.take(key) else {
            return None;
        };
        if table.len() > MAX_LIST {
            self.bad(
                Code::TooLarge,
                key,
                format!("more than {MAX_LIST} counts"),
                "shorten it",
            );
            return None;
        }
        let field = self.at.child(key);
        let mut counts = Vec::new();
        for (name, value) in table {
            let name = name.get_ref().to_string();
            let place = field.child(&printable(&name));
            self.faults.document.mark(&place, value.span());
            let count = match value.get_ref() {
                DeValue::Integer(n) => u32::from_str_radix(n.as_str(), n.radix()).ok(),
                _ => None,
            };
            match count.filter(|&count| count <= MAX_COUNT) {
                Some(count) => counts.push((name, count)),
                None => {
                    self.faults.graph_unreliable = true;
                    let help = format!("give a whole number from 1 to {MAX_COUNT}");
                    self.faults
                        .push(Code::OutOfRange, &place, "not a count", help);
                }
            }
        }
        (counts.len() == table.len()).then_some(counts)
    }

    /// Free-form JSON: a TOML table. Dates become strings.
    pub(crate) fn json(&mut self, key: &'static str, example: &str) -> Option<Map<String, Value>> {
        if self.has(key) && !self.is_table(key) {
            let value = self.take(key)?;
            self.wrong_type(key, value, "a table", example);
            return None;
        }
        match self.any_json(key)? {
            Value::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// Free-form JSON of any type: a TOML value. Dates become strings.
    pub(crate) fn any_json(&mut self, key: &'static str) -> Option<Value> {
        match to_json(self.take(key)?) {
            Ok(value) => Some(value),
            Err(InvalidValue(what)) => {
                self.bad(
                    Code::OutOfRange,
                    key,
                    what,
                    "give a number that JSON can hold",
                );
                None
            }
        }
    }

    /// The tables of `[[key]]` in this table, each with its index in the file.
    pub(crate) fn sections(
        &mut self,
        key: &'static str,
        most: usize,
    ) -> Vec<(Field, &'t DeTable<'t>, usize)> {
        let section = self.at.child(key).key();
        let items = match self.take(key) {
            None => return Vec::new(),
            Some(DeValue::Array(items)) => items,
            Some(other) => {
                let message = format!(
                    "{} stands where a list of tables is expected",
                    type_name(other)
                );
                self.faults.graph_unreliable = true;
                self.bad(
                    Code::WrongType,
                    key,
                    message,
                    format!("begin each with `[[{section}]]`"),
                );
                return Vec::new();
            }
        };
        if items.len() > most {
            let message = format!("{} of them are more than {most}", items.len());
            self.faults.graph_unreliable = true;
            self.bad(Code::TooLarge, key, message, "split the workflow");
            return Vec::new();
        }
        let mut tables = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let at = Field::element(&section, index);
            self.faults.document.mark(&at, item.span());
            match item.get_ref() {
                DeValue::Table(table) => {
                    let name = table.get("name").and_then(|name| name.get_ref().as_str());
                    let label = match name.filter(|name| is_name(name, true)) {
                        Some(name) => format!("{section} {name:?}"),
                        None => format!("{section} #{}", index + 1),
                    };
                    self.faults.document.name(&at, label);
                    tables.push((at, table, index));
                }
                other => {
                    let message = format!("{} stands where a table is expected", type_name(other));
                    self.faults.graph_unreliable = true;
                    self.faults.push(
                        Code::WrongType,
                        &at,
                        message,
                        format!("write `[[{section}]]`"),
                    );
                }
            }
        }
        tables
    }
}

/// Maximum number of messages or blocks in a group.
pub(crate) const MAX_COUNT: u32 = 1_000_000;
