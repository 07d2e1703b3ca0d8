//! Facts about indexes, deletes, updates and the other commands, as the server's own tests have them: each a state, a command and what follows.

mod create_indexes;
mod deletes;
mod explained_writes;
mod forms;
mod hints;
mod modified;
mod partial;
mod raw_indexes;
mod updates;
