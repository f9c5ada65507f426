//! Tests of the logs through their public interface.

mod crash;
mod damage;
mod disk;
mod embedded;
mod jetstream;
mod model;
mod scenario;
