//! Polynomials of a circuit's columns.

use crate::Scalar;

/// A polynomial as a sequence of stack operations, so that evaluating untrusted ones needs no recursion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expression {
    operations: Vec<Operation>,
}

/// A step of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Pushes a number.
    Constant(Scalar),
    /// Pushes a column's evaluation.
    Query(Query),
    /// Replaces the top by its negative.
    Negate,
    /// Replaces the two at the top by their sum.
    Add,
    /// Replaces the two at the top by their product.
    Multiply,
    /// Multiplies the top by a number.
    Scale(Scalar),
}

/// A column at a rotation, by the number of the query among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    Fixed(usize),
    Advice(usize),
    Instance(usize),
}

/// The evaluations that a proof has of the queries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evaluations<'a> {
    pub(crate) fixed: &'a [Scalar],
    pub(crate) advice: &'a [Scalar],
    pub(crate) instance: &'a [Scalar],
}

// === impl Expression ===

impl Expression {
    /// Appends a step; operands come before the operation that takes them.
    pub(crate) fn push(&mut self, operation: Operation) {
        self.operations.push(operation);
    }

    /// Steps of an evaluation.
    pub(crate) fn len(&self) -> usize {
        self.operations.len()
    }

    /// The queries in it.
    pub(crate) fn queries(&self) -> impl Iterator<Item = Query> {
        self.operations.iter().filter_map(|step| match step {
            Operation::Query(query) => Some(*query),
            _ => None,
        })
    }

    /// The degree in the columns.
    pub(crate) fn degree(&self) -> usize {
        let combine = |top: usize, operation: &Operation, below: usize| match operation {
            Operation::Add => below.max(top),
            _ => below.saturating_add(top),
        };
        let push = |operation: &Operation| match operation {
            Operation::Query(_) => Some(1),
            Operation::Constant(_) => Some(0),
            _ => None,
        };
        self.run(push, |top, _| top, combine)
    }

    /// The value with these evaluations of the columns.
    pub(crate) fn evaluate(&self, evaluations: Evaluations<'_>) -> Scalar {
        let push = |operation: &Operation| match operation {
            Operation::Constant(number) => Some(*number),
            Operation::Query(query) => Some(evaluations.of(*query)),
            _ => None,
        };
        let change = |top: Scalar, operation: &Operation| match operation {
            Operation::Scale(factor) => top * factor,
            _ => -top,
        };
        let combine = |top: Scalar, operation: &Operation, below: Scalar| match operation {
            Operation::Add => below + top,
            _ => below * top,
        };
        self.run(push, change, combine)
    }

    /// Runs the steps. An expression that was read has its operands: nothing is missing on the stack.
    fn run<T: Default>(
        &self,
        push: impl Fn(&Operation) -> Option<T>,
        change: impl Fn(T, &Operation) -> T,
        combine: impl Fn(T, &Operation, T) -> T,
    ) -> T {
        let mut stack = Vec::new();
        for operation in &self.operations {
            let value = match operation {
                Operation::Negate | Operation::Scale(_) => {
                    let top = stack.pop().expect("an operand");
                    change(top, operation)
                }
                Operation::Add | Operation::Multiply => {
                    let top = stack.pop().expect("an operand");
                    let below = stack.pop().expect("another operand");
                    combine(top, operation, below)
                }
                Operation::Constant(_) | Operation::Query(_) => {
                    push(operation).expect("a value for each operand")
                }
            };
            stack.push(value);
        }
        stack.pop().unwrap_or_default()
    }
}

// === impl Evaluations ===

impl Evaluations<'_> {
    /// The evaluation of a query.
    pub(crate) fn of(&self, query: Query) -> Scalar {
        match query {
            Query::Fixed(index) => self.fixed[index],
            Query::Advice(index) => self.advice[index],
            Query::Instance(index) => self.instance[index],
        }
    }
}
