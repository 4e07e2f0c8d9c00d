import Glibc
import TestKit

/// The program, which performs one run or is a worker of it.
@main
struct CrashDriver {
    static func main() {
        let words = Array(CommandLine.arguments.dropFirst())
        if words == ["--help"] {
            print(Options.help)
            return
        }
        do throws(Options.Wrong) {
            let options = try Options(words)
            if let worker = options.worker {
                guard let folder = options.folder else { exit(2) }
                FileWorker(folder: folder, seed: options.seed, life: options.life, number: worker)
                    .run(count: options.operations)
            } else if options.mode == .full && options.journalFolder == nil {
                Namespace.enter(words, kills: options.kills)
            } else {
                play(options)
            }
        } catch {
            print("\(error.message)\n\(Options.help)")
            exit(2)
        }
    }

    private static func play(_ options: Options) {
        let folder = options.folder ?? TestFile.makeTemporaryFolder("crash")
        do throws(Play.Failure) {
            var play = try Play(options, in: folder)
            print(try play.run())
            TestFile.removeTree(folder)
        } catch {
            print("FAILED: \(options.title): \(error.text)")
            print("\nto see it again: \(options.command)\nwhat is left of it: \(folder)")
            exit(1)
        }
    }
}
