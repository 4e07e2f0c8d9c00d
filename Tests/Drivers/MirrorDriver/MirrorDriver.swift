import Glibc
import System
import TestKit

/// The program, which performs one run or is a worker of it.
@main
struct MirrorDriver {
    static func main() {
        let words = Array(CommandLine.arguments.dropFirst())
        if words == ["--help"] {
            print(Options.help)
            return
        }
        do throws(Options.Wrong) {
            let options = try Options(words)
            if let worker = options.worker {
                work(options, worker)
            } else {
                play(options)
            }
        } catch {
            print("\(error.message)\n\(Options.help)")
            exit(2)
        }
    }

    private static func work(_ options: Options, _ worker: Int) {
        guard let folder = options.folder else { exit(2) }
        let generator = OperationGenerator(
            seed: options.seed, round: options.round, worker: worker, hidesFolders: options.mode == .unreadable)
        Worker(tree: folder.appending("tree"), number: worker).run(
            generator, count: options.operations, without: options.without)
    }

    private static func play(_ options: Options) {
        let folder = options.folder ?? TestFile.makeTemporaryFolder("mirror")
        do throws(Driver.Failure) {
            var driver = Driver(options, in: folder)
            print(try driver.run())
            TestFile.removeTree(folder)
        } catch {
            print("FAILED: \(options.title): \(error.text)")
            print("\nto see it again: \(options.command)\nwhat is left of it: \(folder)")
            exit(1)
        }
    }
}
