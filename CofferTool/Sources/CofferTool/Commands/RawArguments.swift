internal import ArgumentParser

/// How documents are shown on a terminal.
struct RawArguments: ParsableArguments {
    @Flag(
        help: """
            On a terminal, write control characters, and those that change the direction of writing, as they are instead of as \
            \\uXXXX. Pipes and files always get them as they are.
            """)
    var raw = false

    /// Whether the characters are escaped that a terminal would act on.
    var escapes: Bool { TerminalText.isOutput && !raw }
}
