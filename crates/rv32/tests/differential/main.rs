//! The machine beside a second interpreter, which is written from the manual in another style: patterns of bits in a table,
//! arithmetic on numbers of 64 bits, memory by bytes.

mod compare;
mod edges;
mod generate;
mod random;
mod reference;
mod table;
