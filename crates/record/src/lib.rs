//! Records become files: pcapng and columns.
