//! The logs, as their users see them.

mod crash;
mod damage;
mod disk;
mod embedded;
mod jetstream;
mod model;
mod scenario;
