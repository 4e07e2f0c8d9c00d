/// What the program's exit code says.
///
/// Decided here and nowhere else; printed in every help.
enum ExitStatus: Int32 {
    case done = 0
    case runtimeError = 1
    case usage = 2
    case rulesInvalid = 3
    /// With `--once`: no file was taken by any rule; of `explain`: no path.
    case nothingMatched = 4
    /// With `--once`: some jobs failed.
    case someFailed = 5

    /// The table for help texts.
    static let table = """
        EXIT STATUS
          0  done
          1  runtime error
          2  wrong usage
          3  rules invalid
          4  nothing matched (--once, explain)
          5  some jobs failed (--once)
        """
}
