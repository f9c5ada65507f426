//! The queues that stages name, read from the file's tables themselves: they are known also for a stage that has
//! another fault.

use toml::de::{DeTable, DeValue};

use crate::decode::MAX_STAGES;
use crate::diagnostic::Code;
use crate::document::Field;
use crate::fields::{Faults, MAX_LIST};
use crate::text::{is_name, printable};

/// The queues that the file's stages name, in the order of the file's sections.
pub(crate) struct Mentions {
    /// Queues that a stage reads.
    pub(crate) read: Vec<Mention>,
    /// Queues that a stage writes.
    pub(crate) written: Vec<Mention>,
    /// Whether `read` is complete: no stage may read a queue that could not be read from the file.
    pub(crate) all_read: bool,
    /// Whether `written` is complete, likewise.
    pub(crate) all_written: bool,
}

/// One name of a queue in a stage.
pub(crate) struct Mention {
    pub(crate) queue: String,
    pub(crate) field: Field,
}

// === impl Mentions ===

impl Mentions {
    /// The queues named in the tables of a file whose fields have been read: `faults` holds what was found.
    pub(crate) fn of(faults: &mut Faults, root: &DeTable<'_>) -> Self {
        let complete = faults.list.len() < Faults::MAX && !has_unknown_section(faults, root);
        let mut mentions = Self {
            read: Vec::new(),
            written: Vec::new(),
            all_read: complete,
            all_written: complete,
        };
        mentions.section(faults, root, "source", None, true);
        mentions.section(faults, root, "dispatcher", Some("input"), false);
        mentions.section(faults, root, "collector", Some("inputs"), false);
        match root.get("sequencer").map(|value| value.get_ref()) {
            None => {}
            Some(DeValue::Table(table)) => {
                let at = Field::table("sequencer");
                let read = names(faults, &at, table, "input");
                mentions.all_read &= read.is_some();
                mentions.read.extend(read.unwrap_or_default());
            }
            Some(_) => mentions.all_read = false,
        }
        mentions
    }

    /// Adds the queues of the tables `[[section]]`, which name what they read in the field `input`.
    fn section(
        &mut self,
        faults: &mut Faults,
        root: &DeTable<'_>,
        section: &str,
        input: Option<&'static str>,
        must_write: bool,
    ) {
        let tables = match root.get(section).map(|value| value.get_ref()) {
            None => return,
            Some(DeValue::Array(tables)) if tables.len() <= MAX_STAGES => tables,
            Some(_) => {
                (self.all_read, self.all_written) = (false, false);
                return;
            }
        };
        for (index, table) in tables.iter().enumerate() {
            let DeValue::Table(table) = table.get_ref() else {
                (self.all_read, self.all_written) = (false, false);
                continue;
            };
            let at = Field::element(section, index);
            if let Some(key) = input {
                let read = names(faults, &at, table, key).filter(|read| !read.is_empty());
                self.all_read &= read.is_some();
                self.read.extend(read.unwrap_or_default());
            }
            // An absent output is no output, unless its field may be misspelt.
            let absent = !must_write && !table.contains_key("output");
            let written = match absent && !has_unknown_field(faults, &at) {
                true => Some(Vec::new()),
                false => names(faults, &at, table, "output"),
            };
            self.all_written &= written.is_some();
            self.written.extend(written.unwrap_or_default());
        }
    }
}

/// The names in the field `key`: a name or a list of names. `None` if it is absent or has a fault.
fn names(
    faults: &mut Faults,
    at: &Field,
    table: &DeTable<'_>,
    key: &'static str,
) -> Option<Vec<Mention>> {
    let value = table.get(key)?;
    let list = at.child(key);
    faults.document.mark(&list, value.span());
    let mut mention = |field: Field, value: &DeValue<'_>, span| {
        let queue = value
            .as_str()
            .filter(|name| is_name(name, true))?
            .to_owned();
        faults.document.mark(&field, span);
        Some(Mention { queue, field })
    };
    match value.get_ref() {
        DeValue::Array(items) if items.len() <= MAX_LIST && key != "input" => items
            .iter()
            .enumerate()
            .map(|(index, item)| mention(list.item(index), item.get_ref(), item.span()))
            .collect(),
        single => mention(list, single, value.span()).map(|mention| vec![mention]),
    }
}

/// Whether the file has a table that is none of a workflow's, such as a misspelt `[[dispacher]]`.
fn has_unknown_section(faults: &Faults, root: &DeTable<'_>) -> bool {
    root.iter().any(|(key, value)| {
        let name = printable(key.get_ref());
        matches!(value.get_ref(), DeValue::Table(_) | DeValue::Array(_))
            && faults
                .list
                .iter()
                .any(|fault| fault.code == Code::UnknownField && fault.field == name)
    })
}

/// Whether the table `at`, or a table inside it, has a field that is none of a workflow's.
fn has_unknown_field(faults: &Faults, at: &Field) -> bool {
    let inside = format!("{}.", faults.document.label(at));
    faults
        .list
        .iter()
        .any(|fault| fault.code == Code::UnknownField && fault.field.starts_with(&inside))
}
