//! Writes the built programs, and their code alone, as seeds for the fuzzer.

use std::fs;

use proofmill_rv32::elf;

fn main() {
    let root = env!("CARGO_MANIFEST_DIR");
    for target in ["elf", "instruction"] {
        fs::create_dir_all(format!("{root}/corpus/{target}")).expect("the folder can be made");
    }
    let built = fs::read_dir(format!("{root}/../programs/built")).expect("the built programs");
    for entry in built {
        let entry = entry.expect("a built program");
        let name = entry.file_name().into_string().expect("a plain name");
        let bytes = fs::read(entry.path()).expect("a built program");
        let program = elf::load(&bytes).expect("a valid executable");
        let code: Vec<u8> = program
            .code_words()
            .flat_map(|(_, word)| word.to_le_bytes())
            .collect();
        fs::write(format!("{root}/corpus/elf/{name}"), bytes).expect("a seed");
        fs::write(format!("{root}/corpus/instruction/{name}"), code).expect("a seed");
    }
}
