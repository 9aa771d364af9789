"""The generated blocks of README.md and docs/*.md: a module a subject, a function a block."""
