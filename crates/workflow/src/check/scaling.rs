//! Rules for pools of workers: groups that exist, fallback pools that can help, and a pool for every stage.

use std::collections::BTreeSet;

use super::checker::Checker;
use crate::diagnostic::Code;
use crate::document::Field;
use crate::model::Dispatcher;
use crate::scaling::Scaling;
use crate::suggest::nearest;

pub(super) fn check(checker: &mut Checker<'_>) {
    let pools = &checker.workflow.scaling;
    let mut seen = BTreeSet::new();
    for (index, pool) in pools.iter().enumerate() {
        let at = checker.document().origin(Scaling::SECTION, index);
        if !seen.insert(&pool.name) {
            let key = match checker.document().has(&at.child("name")) {
                true => "name",
                false => "group",
            };
            let message = format!("the pool `{}` is declared twice", pool.name);
            let help = "give each of the group's pools a `name` of its own";
            checker.push(Code::DuplicateName, &at.child(key), message, help);
        }
        if pool.min > pool.max {
            let message = format!("at least {} workers and at most {}", pool.min, pool.max);
            let help = "make `min` at most `max`";
            let key = match checker.document().has(&at.child("min")) {
                true => "min",
                false => "max",
            };
            checker.push(Code::OutOfRange, &at.child(key), message, help);
        }
        group(checker, &at, pool);
        fallback(checker, &at, pool);
    }
    for (index, stage) in checker.workflow.dispatchers.iter().enumerate() {
        let at = checker.document().origin("dispatcher", index);
        covered(checker, &at, stage);
    }
}

fn group(checker: &mut Checker<'_>, at: &Field, pool: &Scaling) {
    let stages = checker.workflow.dispatchers.iter();
    let groups: BTreeSet<&str> = stages.map(|stage| stage.group.as_str()).collect();
    if groups.contains(pool.group.as_str()) {
        return;
    }
    let help = match nearest(&pool.group, groups.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of: {}", Vec::from_iter(groups).join(", ")),
    };
    let message = format!("no dispatcher has the worker group `{}`", pool.group);
    checker.push(Code::UnknownGroup, &at.child("group"), message, help);
}

fn fallback(checker: &mut Checker<'_>, at: &Field, pool: &Scaling) {
    let Some(name) = &pool.fallback else { return };
    let pools = &checker.workflow.scaling;
    let field = at.child("fallback");
    let Some(other) = pools.iter().find(|other| other.name == *name) else {
        let names = pools.iter().map(|pool| pool.name.as_str());
        let help = match nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add `[[scaling]]` with `name = \"{name}\"`"),
        };
        let message = format!("there is no pool `{name}`");
        return checker.push(Code::BadFallback, &field, message, help);
    };
    let (message, help) = if other.name == pool.name {
        ("a pool cannot stand in for itself", "name another pool")
    } else if other.group != pool.group {
        (
            "the fallback pool is of another worker group, whose workers run other stages",
            "give both pools the same `group`",
        )
    } else if other.fallback.is_some() {
        (
            "the fallback pool has a fallback pool itself",
            "remove `fallback` from one of the two",
        )
    } else {
        return;
    };
    checker.push(Code::BadFallback, &field, message, help);
}

/// Whether the stage's tasks can be run by a pool of its group that is no fallback. Groups without a table have one.
fn covered(checker: &mut Checker<'_>, at: &Field, stage: &Dispatcher) {
    let all = &checker.workflow.scaling;
    let of_group = || all.iter().filter(|pool| pool.group == stage.group);
    let is_fallback = |pool: &Scaling| {
        let mut others = of_group().filter(|other| other.name != pool.name);
        others.any(|other| other.fallback.as_ref() == Some(&pool.name))
    };
    let suits = |pool: &&Scaling| {
        pool.labels.is_empty()
            || stage
                .requires
                .iter()
                .all(|label| pool.labels.contains(label))
    };
    if of_group().next().is_none() || of_group().filter(suits).any(|pool| !is_fallback(pool)) {
        return;
    }
    let message = format!(
        "no pool of group `{}` that is not a fallback has the labels of this stage: {}",
        stage.group,
        stage.requires.join(", ")
    );
    let help = "add them to the `labels` of a `[[scaling]]` of the group";
    let key = match checker.document().has(&at.child("requires")) {
        true => at.child("requires"),
        false => at.clone(),
    };
    checker.push(Code::UncoveredStage, &key, message, help);
}
