// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths, StandardOpenOption}
import java.util.Locale

/** A log of lines "seconds since the beginning, i = round: message", in a new file. */
class Logger(filepath: String) {
  private val file = Files.newBufferedWriter(
    Paths.get(filepath), UTF_8, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING)
  private val begun = System.nanoTime

  /** Writes a line, at once.
    *
    * @param i the round; none if negative
    */
  def log(message: String, i: Int = -1): Unit = synchronized {
    val seconds = "%.3f".formatLocal(Locale.ROOT, (System.nanoTime - begun) / 1e9)
    file.write(if (i < 0) s"$seconds: $message\n" else s"$seconds, i = $i: $message\n")
    file.flush()
  }
}
