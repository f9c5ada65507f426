//! A small circuit of 64 rows: a chain of products of numbers below 16.

use halo2_proofs::circuit::{Layouter, SimpleFloorPlanner, Value};
use halo2_proofs::pasta::{EqAffine, Fp};
use halo2_proofs::plonk::{
    Advice, Circuit, Column, ConstraintSystem, Error, Instance, ProvingKey, Selector, TableColumn,
    create_proof, keygen_pk, keygen_vk,
};
use halo2_proofs::poly::Rotation;
use halo2_proofs::poly::commitment::Params;
use halo2_proofs::transcript::{Blake2bWrite, Challenge255};
use rand_next::rand_core::UnwrapErr;
use rand_next::rngs::SysRng;

/// Binary logarithm of the rows.
pub const K: u32 = 6;
/// Factors are below this.
const LIMIT: u64 = 16;
/// Factors of a product.
pub const FACTORS: usize = 5;

/// A circuit that proves: the second public input is the first times secret numbers below 16.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    start: Value<Fp>,
    factors: [Value<Fp>; FACTORS],
}

/// Rows of factor, product before and product after; the product after is the next row's before.
#[derive(Clone, Debug)]
pub struct Columns {
    factor: Column<Advice>,
    before: Column<Advice>,
    after: Column<Advice>,
    instance: Column<Instance>,
    chained: Selector,
    table: TableColumn,
}

// === impl Chain ===

impl Chain {
    /// A circuit with these numbers.
    pub fn new(start: u64, factors: [u64; FACTORS]) -> Self {
        Self {
            start: Value::known(Fp::from(start)),
            factors: factors.map(|factor| Value::known(Fp::from(factor))),
        }
    }
}

/// The public inputs.
pub fn inputs(start: u64, factors: [u64; FACTORS]) -> [u64; 2] {
    [start, start * factors.iter().product::<u64>()]
}

/// Keys, made in milliseconds.
pub fn keys() -> (Params<EqAffine>, ProvingKey<EqAffine>) {
    let params = Params::new(K);
    let circuit = Chain::default();
    let key = keygen_vk(&params, &circuit).expect("a circuit of 64 rows");
    let key = keygen_pk(&params, key, &circuit).expect("a circuit of 64 rows");
    (params, key)
}

/// One proof of several chains.
pub fn prove(
    (params, key): &(Params<EqAffine>, ProvingKey<EqAffine>),
    chains: &[(u64, [u64; FACTORS])],
) -> Vec<u8> {
    let circuits: Vec<_> = chains.iter().map(|(s, f)| Chain::new(*s, *f)).collect();
    let columns: Vec<[Fp; 2]> = chains
        .iter()
        .map(|(start, factors)| inputs(*start, *factors).map(Fp::from))
        .collect();
    let columns: Vec<[&[Fp]; 1]> = columns.iter().map(|column| [&column[..]]).collect();
    let instances: Vec<&[&[Fp]]> = columns.iter().map(|columns| &columns[..]).collect();
    let mut transcript = Blake2bWrite::<_, EqAffine, Challenge255<_>>::init(Vec::new());
    let rng = UnwrapErr(SysRng);
    create_proof(params, key, &circuits, &instances, rng, &mut transcript).expect("a proof");
    transcript.finalize()
}

impl Circuit<Fp> for Chain {
    type Config = Columns;
    type FloorPlanner = SimpleFloorPlanner;

    fn without_witnesses(&self) -> Self {
        Self::default()
    }

    fn configure(system: &mut ConstraintSystem<Fp>) -> Columns {
        let [factor, before, after] = [(); 3].map(|()| system.advice_column());
        let columns = Columns {
            factor,
            before,
            after,
            instance: system.instance_column(),
            chained: system.selector(),
            table: system.lookup_table_column(),
        };
        system.enable_equality(before);
        system.enable_equality(after);
        system.enable_equality(columns.instance);
        system.lookup(|system| {
            let factor = system.query_advice(factor, Rotation::cur());
            vec![(factor, columns.table)]
        });
        system.create_gate("product", |system| {
            let chained = system.query_selector(columns.chained);
            let factor = system.query_advice(factor, Rotation::cur());
            let product = factor * system.query_advice(before, Rotation::cur());
            let after = system.query_advice(after, Rotation::cur());
            let next = system.query_advice(before, Rotation::next());
            vec![
                chained.clone() * (product - after.clone()),
                chained * (next - after),
            ]
        });
        columns
    }

    fn synthesize(&self, columns: Columns, mut layouter: impl Layouter<Fp>) -> Result<(), Error> {
        layouter.assign_table(
            || "numbers",
            |mut table| {
                for number in 0..LIMIT {
                    let value = || Value::known(Fp::from(number));
                    table.assign_cell(|| "number", columns.table, number as usize, value)?;
                }
                Ok(())
            },
        )?;
        let (first, last) = layouter.assign_region(
            || "chain",
            |mut region| {
                let name = || "chain";
                let first = region.assign_advice(name, columns.before, 0, || self.start)?;
                let (mut product, mut last) = (self.start, None);
                for (row, factor) in self.factors.iter().enumerate() {
                    columns.chained.enable(&mut region, row)?;
                    region.assign_advice(name, columns.factor, row, || *factor)?;
                    product = product * factor;
                    last = Some(region.assign_advice(name, columns.after, row, || product)?);
                    region.assign_advice(name, columns.before, row + 1, || product)?;
                }
                Ok((first, last.ok_or(Error::Synthesis)?))
            },
        )?;
        layouter.constrain_instance(first.cell(), columns.instance, 0)?;
        layouter.constrain_instance(last.cell(), columns.instance, 1)
    }
}
