"""The contract once more, in lists and loops: what the kernel is compared with. It shares no code with the kernel."""
