import OtherActions
import TestKit

/// The rule in the tests of `webhook`.
enum WebhookRule {
    /// Creates a rule for a file in the given directory.
    static func make(_ folder: TemporaryDirectory, name: String = "a b.txt") -> ContentRule {
        let rule = ContentRule(folder.path, WebhookHandler())
        TestFile.write(rule.path(name), "text")
        return rule
    }
}
