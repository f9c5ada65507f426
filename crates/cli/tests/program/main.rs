//! The program as a person, a script or an init system uses it: real processes, real files, real
//! signals.

mod demo_crashes;
mod demo_headers;
mod examples;
mod operate;
mod support;
mod usage;
