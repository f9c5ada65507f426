//! Circuits with a random shape from a seed: columns, gates, rotations, an optional lookup, public inputs.

use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use halo2_proofs::arithmetic::Field;
use halo2_proofs::circuit::{Layouter, Region, SimpleFloorPlanner, Value};
use halo2_proofs::pasta::Fp;
use halo2_proofs::plonk::{
    Advice, Circuit, Column, ConstraintSystem, Error, Expression, Fixed, Instance, Selector,
    TableColumn,
};
use halo2_proofs::poly::Rotation;

/// Binary logarithm of the rows.
pub(crate) const K: u32 = 6;
/// Rows with values, and those of them where gates hold: their rotations stay within.
const ROWS: usize = 20;
const GATE_ROWS: std::ops::Range<usize> = 3..17;
/// Numbers of a lookup's table.
const TABLE: u64 = 8;

/// A circuit of the shape that `SEED` gives, with the values that another seed gives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shaped<const SEED: u64> {
    values: Option<u64>,
}

/// A product of cells, each by its column and rotation, under a factor.
#[derive(Clone, Debug)]
struct Term {
    factor: u64,
    cells: Vec<(usize, i32)>,
}

/// The random shape of a circuit.
#[derive(Clone, Debug)]
struct Shape {
    /// Columns of values, of which the first are advice columns.
    advice: usize,
    fixed: usize,
    /// For each gate, the sum of terms in its own column.
    gates: Vec<Vec<Term>>,
    has_lookup: bool,
    /// For each column of public inputs, the first row whose value it exposes.
    shown: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Columns {
    shape: Shape,
    advice: Vec<Column<Advice>>,
    fixed: Vec<Column<Fixed>>,
    sums: Vec<Column<Advice>>,
    instances: Vec<Column<Instance>>,
    gate: Selector,
    table: TableColumn,
}

// === impl Shape ===

impl Shape {
    fn draw(seed: u64) -> Self {
        let rng = &mut StdRng::seed_from_u64(seed);
        let (advice, fixed) = (rng.gen_range(1..4), rng.gen_range(1..3));
        let columns = advice + fixed;
        let mut term = |_| Term {
            factor: rng.gen_range(1..1000),
            cells: (0..rng.gen_range(1..5))
                .map(|_| {
                    let column = rng.gen_range(0..columns);
                    // halo2 queries fixed columns in their own row only.
                    let rotation = rng.gen_range(-3..4);
                    (column, if column < advice { rotation } else { 0 })
                })
                .collect(),
        };
        let counts = [2, 3, 1];
        let gates = counts[..1 + seed as usize % 3].iter();
        let gates = gates.map(|count| (0..*count).map(&mut term).collect());
        Self {
            gates: gates.collect(),
            advice,
            fixed,
            has_lookup: seed % 2 == 1,
            shown: (0..seed as usize % 3)
                .map(|i| GATE_ROWS.start + i)
                .collect(),
        }
    }

    /// The value of a column in a row: advice is below the table's end.
    fn value(&self, values: u64, column: usize, row: usize) -> u64 {
        let salt = if column < self.advice { values } else { 0 };
        let mut rng = StdRng::seed_from_u64(salt << 32 | (column << 16 | row) as u64);
        rng.gen_range(0..TABLE)
    }

    /// The value of a gate's own column in a row.
    fn sum(&self, values: u64, gate: usize, row: usize) -> Fp {
        let terms = self.gates[gate].iter().map(|term| {
            let cells = term.cells.iter().map(|(column, rotation)| {
                let row = row as i64 + i64::from(*rotation);
                Fp::from(self.value(values, *column, row as usize))
            });
            cells.fold(Fp::from(term.factor), |product, cell| product * cell)
        });
        terms.fold(Fp::ZERO, |sum, term| sum + term)
    }
}

// === impl Shaped ===

impl<const SEED: u64> Shaped<SEED> {
    /// A circuit with the values of a seed.
    pub(crate) fn new(values: u64) -> Self {
        let values = Some(values);
        Self { values }
    }

    /// The public inputs: of each column two of the first gate's sums.
    pub(crate) fn inputs(&self) -> Vec<Vec<Fp>> {
        let shape = Shape::draw(SEED);
        let values = self.values.expect("a circuit with values");
        let shown = shape.shown.iter();
        shown
            .map(|row| (0..2).map(|i| shape.sum(values, 0, row + i)).collect())
            .collect()
    }

    fn assign(&self, columns: &Columns, region: &mut Region<'_, Fp>) -> Result<Cells, Error> {
        let shape = &columns.shape;
        let values = self.values;
        let value = |column, row| {
            let known = values.map(|values| Fp::from(shape.value(values, column, row)));
            known.map_or(Value::unknown(), Value::known)
        };
        for row in 0..ROWS {
            for (number, column) in columns.advice.iter().enumerate() {
                region.assign_advice(|| "value", *column, row, || value(number, row))?;
            }
            for (number, column) in columns.fixed.iter().enumerate() {
                let number = shape.advice + number;
                let value = Fp::from(shape.value(0, number, row));
                region.assign_fixed(|| "value", *column, row, || Value::known(value))?;
            }
        }
        let mut cells = Vec::new();
        for row in GATE_ROWS {
            columns.gate.enable(region, row)?;
            for (gate, column) in columns.sums.iter().enumerate() {
                let sum = values.map(|values| shape.sum(values, gate, row));
                let sum = sum.map_or(Value::unknown(), Value::known);
                let cell = region.assign_advice(|| "sum", *column, row, || sum)?;
                if gate == 0 {
                    cells.push(cell.cell());
                }
            }
        }
        Ok(cells)
    }
}

type Cells = Vec<halo2_proofs::circuit::Cell>;

impl<const SEED: u64> Circuit<Fp> for Shaped<SEED> {
    type Config = Columns;
    type FloorPlanner = SimpleFloorPlanner;

    fn without_witnesses(&self) -> Self {
        Self::default()
    }

    fn configure(system: &mut ConstraintSystem<Fp>) -> Columns {
        let shape = Shape::draw(SEED);
        let columns = Columns {
            advice: (0..shape.advice).map(|_| system.advice_column()).collect(),
            fixed: (0..shape.fixed).map(|_| system.fixed_column()).collect(),
            sums: shape.gates.iter().map(|_| system.advice_column()).collect(),
            instances: shape
                .shown
                .iter()
                .map(|_| system.instance_column())
                .collect(),
            gate: system.selector(),
            table: system.lookup_table_column(),
            shape,
        };
        system.enable_equality(columns.sums[0]);
        for column in &columns.instances {
            system.enable_equality(*column);
        }
        if columns.shape.has_lookup {
            system.lookup(|system| {
                let value = system.query_advice(columns.advice[0], Rotation::cur());
                vec![(value, columns.table)]
            });
        }
        for (terms, column) in columns.shape.gates.iter().zip(&columns.sums) {
            system.create_gate("sum", |system| {
                let mut rest = system.query_advice(*column, Rotation::cur());
                for term in terms {
                    let mut product = Expression::Constant(Fp::from(term.factor));
                    for (number, rotation) in &term.cells {
                        let rotation = Rotation(*rotation);
                        product = product
                            * match number.checked_sub(columns.advice.len()) {
                                None => system.query_advice(columns.advice[*number], rotation),
                                Some(number) => system.query_fixed(columns.fixed[number]),
                            };
                    }
                    rest = rest - product;
                }
                vec![system.query_selector(columns.gate) * rest]
            });
        }
        columns
    }

    fn synthesize(&self, columns: Columns, mut layouter: impl Layouter<Fp>) -> Result<(), Error> {
        layouter.assign_table(
            || "numbers",
            |mut table| {
                for number in 0..TABLE {
                    let value = || Value::known(Fp::from(number));
                    table.assign_cell(|| "number", columns.table, number as usize, value)?;
                }
                Ok(())
            },
        )?;
        let cells =
            layouter.assign_region(|| "rows", |mut region| self.assign(&columns, &mut region))?;
        for (column, row) in columns.instances.iter().zip(&columns.shape.shown) {
            for input in 0..2 {
                let cell = cells[row - GATE_ROWS.start + input];
                layouter.constrain_instance(cell, *column, input)?;
            }
        }
        Ok(())
    }
}
