//! The text of a pinned key: Rust's debug form, without line breaks.

use ark_ec::AffineRepr;
use ark_ff::{BigInt, PrimeField};

use super::{ColumnQuery, Lookup, MAX_K, MAX_KEY_BYTES, VerifyingKey};
use crate::expression::{Expression, Operation, Query};
use crate::field::element;
use crate::{Base, Point, Scalar};

/// The reason why a text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Longer than any key.
    #[error("{0} bytes: a key has at most {MAX_KEY_BYTES}")]
    TooLong(usize),
    /// The text differs from the form of a pinned key.
    #[error("byte {at}: expected {expected}, as in `format!(\"{{:?}}\", key.pinned())`")]
    Syntax {
        /// Offset in bytes, from 0.
        at: usize,
        /// The expected text, or a description of it.
        expected: &'static str,
    },
    /// The key describes an impossible circuit.
    #[error("{0}")]
    Circuit(&'static str),
}

/// The most nested operations of an expression. The reader is recursive, and no circuit nests deeper.
const MAX_DEPTH: usize = 256;
/// The most entries of any list: columns, queries, gates or lookups.
const MAX_LIST: usize = 1 << 14;

const BASE_MODULUS: &str = "0x40000000000000000000000000000000224698fc0994a8dd8c46eb2100000001";
const SCALAR_MODULUS: &str = "0x40000000000000000000000000000000224698fc094cf91b992d30ed00000001";

/// Reads a text from its beginning.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// A kind of columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fixed,
    Advice,
    Instance,
}

type Result<T> = std::result::Result<T, KeyError>;
/// A query of a kind of columns, by its number.
type MakeQuery = fn(usize) -> Query;

/// Parses a key. Derived values are not yet set; `degree` is the pinned minimum degree, 0 without one.
pub(super) fn read(text: &str) -> Result<VerifyingKey> {
    if text.len() > MAX_KEY_BYTES {
        return Err(KeyError::TooLong(text.len()));
    }
    let mut reader = Reader { text, at: 0 };
    let key = reader.key()?;
    match reader.at == text.len() {
        true => Ok(key),
        false => Err(reader.error("the end")),
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn error(&self, expected: &'static str) -> KeyError {
        KeyError::Syntax {
            at: self.at,
            expected,
        }
    }

    /// Whether the text goes on with this; then it is behind.
    fn take(&mut self, literal: &str) -> bool {
        let found = self.rest().starts_with(literal);
        if found {
            self.at += literal.len();
        }
        found
    }

    fn expect(&mut self, literal: &'static str) -> Result<()> {
        match self.take(literal) {
            true => Ok(()),
            false => Err(self.error(literal)),
        }
    }

    /// A decimal number of up to nine digits.
    fn number(&mut self) -> Result<usize> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || digits > 9 {
            return Err(self.error("a decimal number"));
        }
        let number = self.rest()[..digits].parse();
        let number = number.map_err(|_| self.error("a decimal number"))?;
        self.at += digits;
        Ok(number)
    }

    fn rotation(&mut self) -> Result<i32> {
        self.expect("Rotation(")?;
        let negative = self.take("-");
        let rows = self.number()? as i32;
        self.expect(")")?;
        Ok(if negative { -rows } else { rows })
    }

    /// A number below the modulus in 64 hexadecimal digits.
    fn element<F: PrimeField<BigInt = BigInt<4>>>(&mut self) -> Result<F> {
        const EXPECTED: &str = "an element of the field: 0x and 64 hexadecimal digits";
        let error = self.error(EXPECTED);
        let digits = match self.take("0x") {
            true => self.rest().as_bytes().first_chunk::<64>(),
            false => None,
        };
        let digits = digits.ok_or(error.clone())?;
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().rev().zip(digits.as_chunks::<2>().0) {
            for digit in digits {
                let value = char::from(*digit).to_digit(16).ok_or(error.clone())?;
                *byte = *byte << 4 | value as u8;
            }
        }
        self.at += 64;
        element(&bytes).ok_or(error)
    }

    fn point(&mut self) -> Result<Point> {
        if self.take("Infinity") {
            return Ok(Point::zero());
        }
        let error = self.error("a point of Vesta");
        self.expect("(")?;
        let x: Base = self.element()?;
        self.expect(", ")?;
        let y: Base = self.element()?;
        self.expect(")")?;
        let point = Point::new_unchecked(x, y);
        // The curve's order is prime: each of its points is in the group.
        match point.is_on_curve() {
            true => Ok(point),
            false => Err(error),
        }
    }

    /// `[a, b]`.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect("[")?;
        let mut items = Vec::new();
        if self.take("]") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take("]") {
                return Ok(items);
            }
            if items.len() == MAX_LIST {
                return Err(self.error("a shorter list"));
            }
            self.expect(", ")?;
        }
    }

    fn column(&mut self) -> Result<(Kind, usize)> {
        self.expect("Column { index: ")?;
        let index = self.number()?;
        self.expect(", column_type: ")?;
        let kinds = [
            ("Fixed", Kind::Fixed),
            ("Advice", Kind::Advice),
            ("Instance", Kind::Instance),
        ];
        let Some((_, kind)) = kinds.into_iter().find(|(name, _)| self.take(name)) else {
            return Err(self.error("Fixed, Advice or Instance"));
        };
        self.expect(" }")?;
        Ok((kind, index))
    }

    /// Queries of one kind of columns, of which there are `columns`; each but once.
    fn queries(&mut self, kind: Kind, columns: usize) -> Result<Vec<ColumnQuery>> {
        let mut seen = std::collections::HashSet::new();
        self.list(|reader| {
            let error = reader.error("another query of a column that the circuit has");
            reader.expect("(")?;
            let (found, column) = reader.column()?;
            reader.expect(", ")?;
            let rotation = reader.rotation()?;
            reader.expect(")")?;
            let query = ColumnQuery { column, rotation };
            match found == kind && column < columns && seen.insert(query) {
                true => Ok(query),
                false => Err(error),
            }
        })
    }

    fn expression(&mut self) -> Result<Expression> {
        let mut expression = Expression::default();
        self.operation(&mut expression, MAX_DEPTH)?;
        Ok(expression)
    }

    /// Appends an expression's steps, its operands' first.
    fn operation(&mut self, expression: &mut Expression, depth: usize) -> Result<()> {
        if depth == 0 {
            return Err(self.error("an expression of less depth"));
        }
        let operation = if self.take("Constant(") {
            Operation::Constant(self.element()?)
        } else if self.take("Negated(") {
            self.operation(expression, depth - 1)?;
            Operation::Negate
        } else if self.take("Sum(") {
            self.operands(expression, depth)?;
            Operation::Add
        } else if self.take("Product(") {
            self.operands(expression, depth)?;
            Operation::Multiply
        } else if self.take("Scaled(") {
            self.operation(expression, depth - 1)?;
            self.expect(", ")?;
            Operation::Scale(self.element()?)
        } else {
            expression.push(Operation::Query(self.query()?));
            return Ok(());
        };
        self.expect(")")?;
        expression.push(operation);
        Ok(())
    }

    fn operands(&mut self, expression: &mut Expression, depth: usize) -> Result<()> {
        self.operation(expression, depth - 1)?;
        self.expect(", ")?;
        self.operation(expression, depth - 1)
    }

    fn query(&mut self) -> Result<Query> {
        let kinds: [(&str, MakeQuery); 3] = [
            ("Fixed", Query::Fixed),
            ("Advice", Query::Advice),
            ("Instance", Query::Instance),
        ];
        let Some((_, query)) = kinds.into_iter().find(|(name, _)| self.take(name)) else {
            return Err(self.error("an expression"));
        };
        self.expect(" { query_index: ")?;
        let index = self.number()?;
        self.expect(", column_index: ")?;
        self.number()?;
        self.expect(", rotation: ")?;
        self.rotation()?;
        self.expect(" }")?;
        Ok(query(index))
    }

    fn lookup(&mut self) -> Result<Lookup> {
        self.expect("Argument { input_expressions: ")?;
        let inputs = self.list(Self::expression)?;
        self.expect(", table_expressions: ")?;
        let table = self.list(Self::expression)?;
        let error = self.error("as many expressions of the table as of the input");
        self.expect(" }")?;
        match inputs.len() == table.len() {
            true => Ok(Lookup { inputs, table }),
            false => Err(error),
        }
    }

    /// `name: number`.
    fn count(&mut self, name: &'static str) -> Result<usize> {
        self.expect(name)?;
        let error = self.error("fewer");
        match self.number()? {
            count if count <= MAX_LIST => Ok(count),
            _ => Err(error),
        }
    }

    fn key(&mut self) -> Result<VerifyingKey> {
        self.expect("PinnedVerificationKey { base_modulus: \"")?;
        self.expect(BASE_MODULUS)?;
        self.expect("\", scalar_modulus: \"")?;
        self.expect(SCALAR_MODULUS)?;
        self.expect("\", domain: PinnedEvaluationDomain { ")?;
        let k = self.count("k: ")? as u32;
        if k > MAX_K {
            return Err(KeyError::Circuit("more rows than 2^20"));
        }
        self.count(", extended_k: ")?;
        self.expect(", omega: ")?;
        let omega = self.element()?;
        self.expect(" }, cs: PinnedConstraintSystem { ")?;
        let fixed_columns = self.count("num_fixed_columns: ")?;
        let advice_columns = self.count(", num_advice_columns: ")?;
        let instance_columns = self.count(", num_instance_columns: ")?;
        self.count(", num_selectors: ")?;
        self.expect(", gates: ")?;
        let gates = self.list(Self::expression)?;
        self.expect(", advice_queries: ")?;
        let advice_queries = self.queries(Kind::Advice, advice_columns)?;
        self.expect(", instance_queries: ")?;
        let instance_queries = self.queries(Kind::Instance, instance_columns)?;
        self.expect(", fixed_queries: ")?;
        let fixed_queries = self.queries(Kind::Fixed, fixed_columns)?;
        let mut key = VerifyingKey {
            k,
            omega,
            instance_columns,
            advice_columns,
            gates,
            instance_queries,
            advice_queries,
            fixed_queries,
            permutation: Vec::new(),
            lookups: Vec::new(),
            degree: 0,
            operations: 0,
            blinding_factors: 0,
            fixed_commitments: Vec::new(),
            permutation_commitments: Vec::new(),
            digest: Scalar::default(),
        };
        self.arguments(&mut key)?;
        self.commitments(&mut key, fixed_columns)?;
        Ok(key)
    }

    /// The permutation, lookups, and the rest of the constraint system.
    fn arguments(&mut self, key: &mut VerifyingKey) -> Result<()> {
        self.expect(", permutation: Argument { columns: ")?;
        key.permutation = self.list(|reader| {
            let error = reader.error("a column with a query");
            let (kind, column) = reader.column()?;
            let (queries, query): (_, MakeQuery) = match kind {
                Kind::Fixed => (&key.fixed_queries, Query::Fixed),
                Kind::Advice => (&key.advice_queries, Query::Advice),
                Kind::Instance => (&key.instance_queries, Query::Instance),
            };
            let rotation = 0;
            let wanted = ColumnQuery { column, rotation };
            let index = queries.iter().position(|query| *query == wanted);
            Ok(query(index.ok_or(error)?))
        })?;
        self.expect(" }, lookups: ")?;
        key.lookups = self.list(Self::lookup)?;
        self.expect(", constants: ")?;
        self.list(Self::column)?;
        self.expect(", minimum_degree: ")?;
        if !self.take("None") {
            key.degree = self.count("Some(")?;
            self.expect(")")?;
        }
        self.expect(" }")
    }

    fn commitments(&mut self, key: &mut VerifyingKey, fixed_columns: usize) -> Result<()> {
        self.expect(", fixed_commitments: ")?;
        key.fixed_commitments = self.list(Self::point)?;
        if key.fixed_commitments.len() != fixed_columns {
            return Err(KeyError::Circuit(
                "not one commitment for each fixed column",
            ));
        }
        self.expect(", permutation: VerifyingKey { commitments: ")?;
        key.permutation_commitments = self.list(Self::point)?;
        self.expect(" } }")
    }
}
