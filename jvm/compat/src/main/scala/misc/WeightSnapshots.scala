// SPDX-License-Identifier: Apache-2.0
package misc

import java.util.concurrent.{Executors, TimeUnit}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

/** Makes DeepSpark's files of the snapshots that a training writes, while it trains. Each is whole when it
  * has its name. Snapshots that lie there before it begins are left alone.
  *
  * @param prefix what the snapshots' names begin with, a Hadoop path: `PREFIX_iter_STEP.caffemodel`
  * @param netSpec the net's prototxt file
  * @param shape of an image: channels, height and width
  * @param name the path of the file for a step
  */
class WeightSnapshots(prefix: String, netSpec: String, shape: Array[Int])(name: Long => String)
    extends AutoCloseable {
  private val log = LoggerFactory.getLogger(classOf[WeightSnapshots])
  private val files = new Path(prefix).getFileSystem(new Configuration())
  private val Step = ".*_iter_(\\d+)\\.caffemodel(\\.h5)?".r
  private var seen = snapshots().keySet
  private val looking = Executors.newSingleThreadScheduledExecutor { (task: Runnable) =>
    val thread = new Thread(task, "weight snapshots")
    thread.setDaemon(true)
    thread
  }
  looking.scheduleWithFixedDelay(() => look(), 1, 1, TimeUnit.SECONDS)

  /** Makes those that are still to be made.
    *
    * @throws java.io.IOException if a file cannot be read or written
    */
  override def close(): Unit = {
    looking.shutdown()
    looking.awaitTermination(1, TimeUnit.HOURS)
    convert()
  }

  /** What fails now is tried again. */
  private def look(): Unit =
    try convert()
    catch { case NonFatal(e) => log.warn(s"a snapshot of $prefix has not become a file of DeepSpark's yet: $e") }

  private def convert(): Unit =
    for ((step, path) <- snapshots().toSeq.sortBy(_._1) if !seen(step)) {
      val made = new Path(name(step))
      val begun = new Path(made.getParent, s".${made.getName}.begun")
      WeightConverter2.convertCaffeModel(path.toString, begun.toString, "", netSpec, shape)
      files.delete(made, false)
      if (!files.rename(begun, made)) throw new java.io.IOException(s"$begun could not be renamed to $made")
      seen += step
    }

  private def snapshots(): Map[Long, Path] =
    Option(files.globStatus(new Path(s"${prefix}_iter_*"))).toSeq.flatten.map(_.getPath).collect {
      case path @ Found(step) => step -> path
    }.toMap

  private object Found {
    def unapply(path: Path): Option[Long] = path.getName match {
      case Step(step, _) => Some(step.toLong)
      case _ => None
    }
  }
}
