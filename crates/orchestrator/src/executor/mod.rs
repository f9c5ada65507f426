//! What a dispatcher runs a task with.
