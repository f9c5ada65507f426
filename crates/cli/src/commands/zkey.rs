//! `proofmill zkey`

use std::path::Path;

use proofmill_files::{MappedFile, Visibility};
use proofmill_groth16::snarkjs::{
    Trust, Zkey as Key, ZkeyFile, ZkeyInfo, read_json, verifying_key_to_json,
};
use proofmill_groth16::with_curve;
use proofmill_r1cs::iden3::ReadError;
use serde_json::json;

use crate::args::circuits::{Zkey, ZkeyCheck, ZkeyExport, ZkeyInfo as InfoArgs};
use crate::commands::inspect::print_table;
use crate::commands::solidity;
use crate::content::FileKind;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, write};
use crate::key_safety::warn;
use crate::output;
use crate::progress::counted;
use crate::stages::{Stages, milliseconds, short};

pub(crate) fn run(command: Zkey) -> Result<(), Failure> {
    match command {
        Zkey::Info(args) => info(&args),
        Zkey::Check(args) => check(&args),
        Zkey::ExportVk(args) => export(&args),
        Zkey::ExportSolidity(args) => solidity::export(&args),
    }
}

fn info(args: &InfoArgs) -> Result<(), Failure> {
    let file = open(&args.zkey)?;
    let info = parse(&args.zkey, &file)?
        .info()
        .map_err(|error| error.in_file(&args.zkey))?;
    if args.json {
        return output::line(info_to_json(&info).to_string());
    }
    let header = &info.header;
    let domain = header.domain_size;
    let mut lines = vec![
        format!("curve          {}", header.curve),
        format!(
            "public         {}",
            counted(header.public as usize, "signal")
        ),
        format!("variables      {}", header.variables),
        format!("domain         {domain} = 2^{}", domain.ilog2()),
        format!("coefficients   {}", info.coefficients),
    ];
    lines.extend(
        info.circuit_hash
            .map(|hash| format!("circuit hash   {hash}")),
    );
    match &info.contributions[..] {
        [] => lines.push("contributions  none are recorded".to_owned()),
        list => {
            for (number, contribution) in (1..).zip(list) {
                let name = contribution.name.as_deref().unwrap_or("(no name)");
                let kind = if contribution.beacon {
                    ", a beacon"
                } else {
                    ""
                };
                lines.push(format!("contribution   {number}: {name}{kind}"));
                lines.push(format!("               {}", contribution.hash));
            }
        }
    }
    let weaknesses = info.weaknesses.iter();
    lines.extend(weaknesses.map(|weakness| format!("INSECURE       {weakness}")));
    lines.push(String::new());
    output::raw(output::plain(&(lines.join("\n") + "\n")).as_bytes())?;
    let rows = info.sections.iter().map(|section| {
        [
            section.kind.to_string(),
            section.name.unwrap_or("-").to_owned(),
            section.offset.to_string(),
            section.bytes.to_string(),
        ]
    });
    print_table(["SECTION", "CONTENT", "FROM BYTE", "BYTES"], rows)
}

fn info_to_json(info: &ZkeyInfo) -> serde_json::Value {
    let header = &info.header;
    let sections = info.sections.iter().map(|section| {
        json!({
            "section": section.kind,
            "content": section.name,
            "offset": section.offset,
            "bytes": section.bytes,
        })
    });
    let contributions = info.contributions.iter().map(
        |one| json!({ "name": one.name, "hash": hex::encode(one.hash.0), "beacon": one.beacon }),
    );
    let weaknesses = info.weaknesses.iter().map(ToString::to_string);
    json!({
        "curve": header.curve.name(),
        "public_signals": header.public,
        "variables": header.variables,
        "domain": header.domain_size,
        "coefficients": info.coefficients,
        "circuit_hash": info.circuit_hash.map(|hash| hex::encode(hash.0)),
        "contributions": contributions.collect::<Vec<_>>(),
        "weaknesses": weaknesses.collect::<Vec<_>>(),
        "sections": sections.collect::<Vec<_>>(),
    })
}

fn check(args: &ZkeyCheck) -> Result<(), Failure> {
    let file = open(&args.zkey)?;
    let header = *parse(&args.zkey, &file)?.header();
    let mut stages = Stages::begin("check", 1);
    stages.enter("checking every point and coefficient");
    args.threads.run(|| {
        with_curve!(header.curve, E => {
            let (key, _) = Key::<E>::load(&file, Trust::Check)?;
            args.key_safety.check(&args.zkey, &key.verifying_key())
        })
    })??;
    let took = stages.end().total;
    if args.json {
        let (curve, ms) = (header.curve.name(), milliseconds(took));
        let answer = json!({ "curve": curve, "variables": header.variables, "ms": ms });
        return output::line(answer.to_string());
    }
    output::line(output::plain(&format!(
        "{} is a whole key over {}, of {} variables; every point is of its group ({})",
        args.zkey.display(),
        header.curve,
        header.variables,
        short(took)
    )))
}

fn export(args: &ZkeyExport) -> Result<(), Failure> {
    let plan = FilePlan::default()
        .reads("the proving key", &args.zkey)
        .writes("the verifying key", &args.output);
    plan.check(OverwritePolicy::Anything)?;
    let file = open(&args.zkey)?;
    let curve = parse(&args.zkey, &file)?.curve();
    let mut stages = Stages::begin("export", 1);
    stages.enter("reading the key");
    let text = with_curve!(curve, E => {
        let (key, _) = Key::<E>::load(&file, Trust::Check)?;
        let key = key.verifying_key();
        if let Err(insecure) = key.require_secure() {
            warn(&args.zkey, &insecure);
        }
        verifying_key_to_json(&key)
    });
    drop(stages);
    // Overwriting the same key with itself loses nothing.
    let is_there = || read_json(&args.output).is_ok_and(|found| found == text.as_bytes());
    if !args.force && !is_there() {
        let checked = plan.check(OverwritePolicy::NothingHardToRecreate);
        checked
            .map_err(|failure| failure.help("name another file, or overwrite it with --force"))?;
    }
    write(&args.output, Visibility::Public, text.as_bytes())
}

/// Opens a proving key file; fails if it is recognized as another kind.
fn open(path: &Path) -> Result<MappedFile, Failure> {
    FileKind::Zkey.expect(path)?;
    Ok(MappedFile::open(path)?)
}

/// Parses the header and the sections of a key file.
pub(crate) fn parse<'a>(path: &Path, file: &'a MappedFile) -> Result<ZkeyFile<'a>, ReadError> {
    ZkeyFile::parse(file).map_err(|error| error.in_file(path))
}
