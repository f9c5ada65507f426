//! Programs of brainfuck.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::support::{program, run};

/// A greeting, with nested loops.
pub(crate) const HELLO: &str = "++++++++[>++++[>++>+++>+++>+<<<<-]>+>+>->>+[<]<-]>>.>---.+++++++..+++.>>.<-.<.+++.------.\
     --------.>>+.>++.";

#[test]
fn a_greeting_is_written() {
    let outcome = run(&program("interpreter"), HELLO.as_bytes());
    assert_eq!(
        (outcome.code, outcome.output),
        (0, b"Hello World!\n".to_vec())
    );
}

#[test]
fn the_rest_of_the_input_is_the_programs() {
    let program = program("interpreter");
    // The input reversed: the end of the input is read as zero.
    let outcome = run(&program, b"reverse: >,[>,]<[.<]!stressed");
    assert_eq!((outcome.code, outcome.output), (0, b"desserts".to_vec()));
    // The tape wraps around, and so do cells.
    let outcome = run(&program, b"+<-.>.");
    assert_eq!(outcome.output, [255, 1]);
}

#[test]
fn programs_that_cannot_run_are_refused() {
    let program = program("interpreter");
    for (text, code) in [
        ("[", 1),
        ("]", 1),
        ("[]]", 1),
        ("[[]!]", 1),
        ("", 0),
        ("!", 0),
    ] {
        assert_eq!(run(&program, text.as_bytes()).code, code, "{text}");
    }
    assert_eq!(run(&program, &b"+".repeat(1 << 16)).code, 0);
    assert_eq!(run(&program, &b"+".repeat((1 << 16) + 1)).code, 2);
}

/// The meaning of a program, by recursion over its loops. `None` after too many commands.
fn execute(commands: &[u8], state: &mut State<'_>) -> Option<()> {
    let mut at = 0;
    while at < commands.len() {
        state.budget = state.budget.checked_sub(1)?;
        let cell = &mut state.tape[state.cell];
        match commands[at] {
            b'+' => *cell = cell.wrapping_add(1),
            b'-' => *cell = cell.wrapping_sub(1),
            b'.' => state.output.push(*cell),
            b',' => *cell = state.input.next().copied().unwrap_or(0),
            b'>' => state.cell = (state.cell + 1) % state.tape.len(),
            b'<' => state.cell = state.cell.checked_sub(1).unwrap_or(state.tape.len() - 1),
            _ => {
                let mut depth = 0;
                let length = commands[at..].iter().position(|command| {
                    depth += i32::from(*command == b'[') - i32::from(*command == b']');
                    depth == 0
                })?;
                while state.tape[state.cell] != 0 {
                    execute(&commands[at + 1..at + length], state)?;
                    state.budget = state.budget.checked_sub(1)?;
                }
                at += length;
            }
        }
        at += 1;
    }
    Some(())
}

struct State<'a> {
    tape: Vec<u8>,
    cell: usize,
    input: std::slice::Iter<'a, u8>,
    output: Vec<u8>,
    budget: u32,
}

#[test]
fn random_programs_have_their_output() {
    let program = program("interpreter");
    let mut random = StdRng::seed_from_u64(6);
    let mut compared = 0;
    while compared < 200 {
        let mut commands = Vec::new();
        let mut depth = 0;
        for _ in 0..60 {
            let command = *b"++--<>.,.[]]".choose(&mut random).unwrap();
            if command == b']' && depth == 0 {
                continue;
            }
            depth += i32::from(command == b'[') - i32::from(command == b']');
            commands.push(command);
        }
        commands.extend(b"]".repeat(depth as usize));
        let input: Vec<u8> = (0..20).map(|_| random.random()).collect();
        let mut state = State {
            tape: vec![0; 1 << 16],
            cell: 0,
            input: input.iter(),
            output: Vec::new(),
            budget: 20_000,
        };
        if execute(&commands, &mut state).is_some() {
            let outcome = run(&program, &[&commands[..], b"!", &input].concat());
            assert_eq!((outcome.code, outcome.output), (0, state.output));
            compared += 1;
        }
    }
}
