//! The container of circom's and snarkjs's binary files.

use std::io::{self, Cursor as Memory, Write};

use ark_bls12_381::Fq;
use ark_bn254::Fr;
use ark_ff::{BigInteger, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_files::{FileError, MappedFile, Visibility, write_whole};
use proofmill_r1cs::iden3::{
    Container, ContainerWriter, Format, FormatError, MontgomeryField, Reason, canonical_from_le,
    width,
};

static FORMAT: Format = Format {
    name: ".test",
    magic: *b"test",
    version: 3,
    sections: &[(1, "header"), (7, "values")],
};

fn sample() -> Vec<u8> {
    let mut writer = ContainerWriter::new(Memory::new(Vec::new()), &FORMAT).unwrap();
    writer.begin(7).unwrap();
    writer.write_all(&[1, 2, 3, 4]).unwrap();
    writer.write_all(&[5, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    writer.end().unwrap();
    writer.section(1, b"head").unwrap();
    writer.finish().unwrap().into_inner()
}

#[test]
fn what_is_written_is_read() {
    let bytes = sample();
    assert_eq!(bytes[..12], *b"test\x03\0\0\0\x02\0\0\0");
    assert_eq!(bytes.len(), 12 + 12 + 12 + 12 + 4);
    let container = Container::parse(&FORMAT, &bytes).unwrap();
    assert_eq!(
        container.sections().collect::<Vec<_>>(),
        [(7, 24..36), (1, 48..52)]
    );
    let mut values = container.section(7).unwrap();
    assert_eq!(values.u32().unwrap(), 0x0403_0201);
    assert_eq!(values.offset(), 28);
    assert_eq!(values.u64().unwrap(), 5);
    values.clone().finish().unwrap();
    let error = values.u32().unwrap_err();
    assert_eq!(
        error.to_string(),
        ".test file, section 7 (values), byte 36: cut short: 4 bytes needed, 0 left"
    );
    assert_eq!(container.section(1).unwrap().bytes(4).unwrap(), b"head");
    assert!(container.optional(2).is_none());
    assert_eq!(
        container.section(2).unwrap_err().to_string(),
        ".test file, section 2, byte 52: the section is missing"
    );
    let error = container.section(1).unwrap().expect_length(5).unwrap_err();
    assert_eq!(
        error.to_string(),
        ".test file, section 1 (header), byte 48: 4 bytes, where the header asks for 5"
    );
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    let bytes = sample();
    for length in 0..bytes.len() {
        let error = Container::parse(&FORMAT, &bytes[..length]).unwrap_err();
        let (section, offset) = match length {
            0..4 => (None, 0),
            4..8 => (None, 4),
            8..12 => (None, 8),
            12..16 => (None, 12),
            16..24 => (Some(7), 16),
            24..36 => (Some(7), 24),
            36..40 => (None, 36),
            40..48 => (Some(1), 40),
            _ => (Some(1), 48),
        };
        assert_eq!((error.section, error.offset), (section, offset), "{error}");
        assert!(matches!(error.reason, Reason::Truncated { .. }), "{error}");
    }
}

#[test]
fn a_wrong_head_is_refused() {
    let refused = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = sample();
        edit(&mut bytes);
        Container::parse(&FORMAT, &bytes).unwrap_err()
    };
    assert_eq!(
        refused(&|bytes| bytes[0] = 0xff).to_string(),
        r#".test file, head, byte 0: starts with "\xffest", not "test": another kind of file"#
    );
    assert_eq!(
        refused(&|bytes| bytes[4] = 4).to_string(),
        ".test file, head, byte 4: version 4, only version 3 is read"
    );
    assert_eq!(
        refused(&|bytes| bytes[11] = 0xff).to_string(),
        ".test file, head, byte 8: 4278190082 sections, at most 64 are read"
    );
    assert_eq!(
        refused(&|bytes| bytes[36] = 7).to_string(),
        ".test file, section 7 (values), byte 36: the section occurs twice"
    );
    assert_eq!(
        refused(&|bytes| bytes.push(0)).to_string(),
        ".test file, head, byte 52: 1 bytes too many"
    );
    let error = refused(&|bytes| bytes[16..24].fill(0xff));
    let needed = u64::MAX;
    assert_eq!(error.reason, Reason::Truncated { needed, left: 28 });
}

fn in_one_section(content: &[u8]) -> Vec<u8> {
    let mut writer = ContainerWriter::new(Memory::new(Vec::new()), &FORMAT).unwrap();
    writer.section(7, content).unwrap();
    writer.finish().unwrap().into_inner()
}

fn field_elements_round_trip<F: MontgomeryField>() {
    let rng = &mut StdRng::seed_from_u64(5);
    let largest = -F::one();
    let values: Vec<F> = (0..9000).map(|_| F::rand(rng)).chain([largest]).collect();
    let mut content: Vec<u8> = values
        .iter()
        .flat_map(|value| value.into_bigint().to_bytes_le())
        .collect();
    for value in &values {
        value.write_montgomery_le(&mut content);
    }
    let bytes = in_one_section(&content);
    let container = Container::parse(&FORMAT, &bytes).unwrap();
    let mut cursor = container.section(7).unwrap();
    assert_eq!(cursor.clone().field::<F>().unwrap(), values[0]);
    let count = values.len() as u64;
    assert_eq!(cursor.fields::<F>(count).unwrap(), values);
    assert_eq!(cursor.clone().montgomery::<F>().unwrap(), values[0]);
    let read = cursor.convert(count, width::<F>(), F::from_montgomery_le);
    assert_eq!(read.unwrap(), values);
    cursor.finish().unwrap();

    // The prime itself, as the number and as Montgomery form, late in the second of three chunks.
    let at = 24 + 5000 * width::<F>();
    let mut bytes = bytes;
    bytes[at..at + width::<F>()].copy_from_slice(&F::MODULUS.to_bytes_le());
    let container = Container::parse(&FORMAT, &bytes).unwrap();
    let not_canonical = |error: FormatError| {
        assert_eq!(error.reason, Reason::NotCanonical);
        error.offset
    };
    let mut cursor = container.section(7).unwrap();
    assert_eq!(
        not_canonical(cursor.fields::<F>(count).unwrap_err()),
        at as u64
    );
    let mut cursor = container.section(7).unwrap();
    let read = cursor.convert(count, width::<F>(), F::from_montgomery_le);
    assert_eq!(not_canonical(read.unwrap_err()), at as u64);
    let mut cursor = container.section(7).unwrap();
    cursor.skip(5000 * width::<F>() as u64).unwrap();
    let error = cursor.clone().field::<F>().unwrap_err();
    assert_eq!(not_canonical(error), at as u64);
    assert_eq!(
        not_canonical(cursor.montgomery::<F>().unwrap_err()),
        at as u64
    );
}

#[test]
fn field_elements() {
    field_elements_round_trip::<Fr>();
    field_elements_round_trip::<Fq>();
    assert_eq!(canonical_from_le::<Fr>(&[0; 31]), None);
    // More than there can be, before anything is allocated.
    let bytes = in_one_section(&[0; 64]);
    let container = Container::parse(&FORMAT, &bytes).unwrap();
    let error = container.section(7).unwrap().fields::<Fr>(u64::MAX);
    assert!(matches!(
        error.unwrap_err().reason,
        Reason::Truncated { .. }
    ));
}

#[test]
fn files_are_written_whole_and_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.test");
    let rng = &mut StdRng::seed_from_u64(6);
    let content: Vec<u8> = (0..3 << 20).map(|_| u8::rand(rng)).collect();
    for (visibility, content) in [
        (Visibility::Private, &content[..1000]),
        (Visibility::Public, &content[..]),
        (Visibility::Public, &[]),
    ] {
        write_whole(&path, visibility, |out| out.write_all(content)).unwrap();
        for file in [MappedFile::open(&path), MappedFile::read(&path)] {
            let file = file.unwrap();
            assert!(*file == *content);
            file.check_unchanged().unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            match visibility {
                Visibility::Private => assert_eq!(mode, 0o600),
                Visibility::Public => assert_eq!(mode & !0o666, 0),
            }
        }
    }

    // A mapping keeps its content when the file is replaced; the replacement is detected nevertheless.
    write_whole(&path, Visibility::Public, |out| out.write_all(&content)).unwrap();
    let mapped = MappedFile::open(&path).unwrap();
    assert_eq!(
        format!("{mapped:?}"),
        format!(
            "MappedFile {{ path: {path:?}, length: {}, mapped: true }}",
            content.len()
        )
    );
    write_whole(&path, Visibility::Public, |out| out.write_all(b"new")).unwrap();
    assert!(*mapped == *content);
    let changed = |file: &MappedFile| {
        let checked = file.check_unchanged();
        matches!(checked, Err(FileError::Changed { .. }))
    };
    #[cfg(unix)]
    assert!(changed(&mapped));
    let file = MappedFile::open(&path).unwrap();
    std::fs::write(&path, b"newer").unwrap();
    assert!(changed(&file));

    // A failed write leaves the old file, and nothing beside it.
    let error = write_whole(&path, Visibility::Public, |out| {
        out.write_all(&content)?;
        Err::<(), _>(io::Error::other("no more"))
    });
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("{}: no more", path.display())
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"newer");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert!(MappedFile::open(directory.path()).is_err());
}

/// A process with write access may also set the time of modification back.
#[cfg(unix)]
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "nothing else runs on this thread"
)]
fn a_file_overwritten_in_place_with_its_time_set_back_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.test");
    let content = vec![7; 2 << 20];
    std::fs::write(&path, &content).unwrap();
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    let mapped = MappedFile::open(&path).unwrap();
    mapped.check_unchanged().unwrap();
    // Beyond what the system's clock for files tells apart.
    std::thread::sleep(std::time::Duration::from_millis(30));
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(&[8]).unwrap();
    file.set_modified(before).unwrap();
    drop(file);
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!(
        (after.len(), after.modified().unwrap()),
        (content.len() as u64, before)
    );
    assert_eq!(mapped[0], 8, "the mapping is shared");
    let checked = mapped.check_unchanged();
    assert!(
        matches!(checked, Err(FileError::Changed { .. })),
        "{checked:?}"
    );
}
