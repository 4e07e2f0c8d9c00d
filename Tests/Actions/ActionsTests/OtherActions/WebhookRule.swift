import OtherActions
import TestKit

/// The rule in the tests of `webhook`.
enum WebhookRule {
    /// Creates a rule for a file in the given directory.
    static func make(_ directory: TemporaryDirectory, name: String = "a b.txt") -> ContentRule {
        let rule = ContentRule(directory.path, WebhookHandler())
        TestFile.write(rule.path(name), "text")
        return rule
    }
}
