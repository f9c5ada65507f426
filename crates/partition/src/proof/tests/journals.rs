//! Interrupted provers: each part is committed to and proved once, whatever happens in between.

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proofmill_groth16::Bn254;
use proofmill_mutation::Mutator;

use super::case::{Case, rng};
use crate::proof::{Journal, JournalError, PartitionProof, ProveError, Step};
use crate::tests::chain::Chain;

const PARTS: usize = 4;

type Fr = ark_bn254::Fr;

/// Proves with a journal until `steps` have begun; gives the steps that began.
fn prove(
    case: &Case<Bn254>,
    circuit: &Chain<Fr>,
    path: &Path,
    steps: usize,
) -> (Result<PartitionProof<Bn254>, ProveError>, Vec<Step>) {
    let rng = &mut rng(1);
    let mut begun = Vec::new();
    let mut journal = match Journal::open(path, rng) {
        Ok(journal) => journal,
        Err(error) => return (Err(error.into()), begun),
    };
    let stop = |step| {
        if begun.len() == steps {
            return ControlFlow::Break(());
        }
        begun.push(step);
        ControlFlow::Continue(())
    };
    let proved = case.prover().prove(circuit, &mut journal, rng, stop);
    (proved, begun)
}

fn chain() -> (Case<Bn254>, Chain<Fr>, tempfile::TempDir) {
    let case = Case::new(&Chain::blank(PARTS));
    let folder = tempfile::tempdir().unwrap();
    (case, Chain::new(PARTS, 5, 9), folder)
}

/// A prover stopped after each step repeats no step when it resumes.
#[test]
fn a_prover_goes_on_where_it_was() {
    let (case, circuit, folder) = chain();
    let path = folder.path().join("journal");
    let mut all = Vec::new();
    let proof = loop {
        // The trace is run anew each time; one step more.
        let (proved, begun) = prove(&case, &circuit, &path, 2);
        all.extend(begun);
        match proved {
            Ok(proof) => break proof,
            Err(ProveError::Interrupted) => {}
            Err(error) => panic!("{error}"),
        }
        let mode = path
            .metadata()
            .map_or(0o600, |file| file.permissions().mode());
        assert_eq!(mode & 0o777, 0o600, "its seed is secret");
    };
    assert!(case.holds(&circuit.public, &proof));
    all.retain(|step| *step != Step::Trace);
    let commits = all
        .iter()
        .filter(|step| matches!(step, Step::Commit { .. }));
    let proofs = all.iter().filter(|step| matches!(step, Step::Prove { .. }));
    assert_eq!((commits.count(), proofs.count()), (PARTS, PARTS));
    assert_eq!(all.len(), 2 * PARTS + 1, "one aggregation");

    // With a complete journal only the aggregate is made again.
    let (proved, begun) = prove(&case, &circuit, &path, 100);
    assert!(case.holds(&circuit.public, &proved.unwrap()));
    assert_eq!(begun, [Step::Trace, Step::Aggregate]);
    let journal = Journal::<Bn254>::open(&path, &mut rng(2)).unwrap();
    assert_eq!(journal.progress(), (PARTS, PARTS));
    journal.remove().unwrap();
    assert!(!path.exists());
}

/// A journal cut at any place loses the records behind it, or is refused.
#[test]
fn a_torn_record_is_made_again() {
    let (case, circuit, folder) = chain();
    let path = folder.path().join("journal");
    let (proved, _) = prove(&case, &circuit, &path, 100);
    proved.unwrap();
    let whole = std::fs::read(&path).unwrap();
    let head = 28 + 68 + 32;
    let (commitment, proof) = (5 + 32 + 16, 5 + 128 + 16);
    assert_eq!(whole.len(), head + PARTS * (commitment + proof));
    for length in (head..whole.len()).rev().step_by(17).chain([head]) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let journal = Journal::<Bn254>::open(&path, &mut rng(2)).unwrap();
        let records = length - head;
        let commitments = (records / commitment).min(PARTS);
        let proofs = records.saturating_sub(PARTS * commitment) / proof;
        assert_eq!(journal.progress(), (commitments, proofs), "{length} bytes");
    }
    let (proved, begun) = prove(&case, &circuit, &path, 100);
    assert!(case.holds(&circuit.public, &proved.unwrap()));
    assert_eq!(begun.len(), 2 + 2 * PARTS);
    // A file with an incomplete head has no records. A file that begins otherwise is refused and not changed.
    for length in 0..head {
        std::fs::write(&path, &whole[..length]).unwrap();
        let journal = Journal::<Bn254>::open(&path, &mut rng(2)).unwrap();
        assert_eq!(journal.progress(), (0, 0), "{length} bytes");
        // The journal holds the lock.
        drop(journal);
        let mut other = whole[..length.max(1)].to_vec();
        other[0] ^= 1;
        std::fs::write(&path, &other).unwrap();
        assert!(matches!(
            Journal::<Bn254>::open(&path, &mut rng(2)),
            Err(JournalError::File { .. })
        ));
        assert_eq!(std::fs::read(&path).unwrap(), other);
    }
    // A damaged record before others was not torn by a crash, and is refused.
    let mut changed = whole.clone();
    changed[head + 10] ^= 1;
    std::fs::write(&path, &changed).unwrap();
    let refused = Journal::<Bn254>::open(&path, &mut rng(2)).unwrap_err();
    assert!(matches!(refused, JournalError::Record { at, .. } if at == head));
}

#[test]
fn journals_of_others_are_refused() {
    let (case, circuit, folder) = chain();
    let path = folder.path().join("journal");
    let (proved, _) = prove(&case, &circuit, &path, 3);
    assert!(matches!(proved, Err(ProveError::Interrupted)));
    let (proved, _) = prove(&case, &Chain::new(PARTS, 6, 9), &path, 100);
    let other = ProveError::Journal(JournalError::OtherWitness(path.clone()));
    assert_eq!(proved.unwrap_err().to_string(), other.to_string());

    let held = Journal::<Bn254>::open(&path, &mut rng(2)).unwrap();
    let (proved, _) = prove(&case, &circuit, &path, 100);
    let in_use = ProveError::Journal(JournalError::InUse(path.clone()));
    assert_eq!(proved.unwrap_err().to_string(), in_use.to_string());
    drop(held);
    let (proved, _) = prove(&case, &circuit, &path, 100);
    assert!(case.holds(&circuit.public, &proved.unwrap()));
}

/// Every file is read as a journal or refused.
#[test]
fn no_journal_panics() {
    let (case, circuit, folder) = chain();
    let path = folder.path().join("journal");
    let (proved, _) = prove(&case, &circuit, &path, 7);
    assert!(matches!(proved, Err(ProveError::Interrupted)));
    let seed = std::fs::read(&path).unwrap();
    Mutator::of(&[seed]).inputs(2_000).run("journal", |bytes| {
        std::fs::write(&path, bytes).unwrap();
        if let Ok(journal) = Journal::<Bn254>::open(&path, &mut rng(2)) {
            let (commitments, proofs) = journal.progress();
            assert!(commitments <= PARTS && proofs <= PARTS);
        }
    });
}
