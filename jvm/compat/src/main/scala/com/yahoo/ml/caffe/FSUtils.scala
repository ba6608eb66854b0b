// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.nio.file.{Files, Path => LocalPath, Paths}

import com.yahoo.ml.jcaffe.CaffeNet
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/** Snapshots of a net that a program feeds itself, at Hadoop paths. For programs in this package, as the tests are
  * that CaffeOnSpark came with.
  */
private[caffe] object FSUtils {

  /** Copies a local file, in place of one that is there. */
  def CopyFileToHDFS(localFilePath: String, hdfsPath: String): Unit = {
    val target = new Path(hdfsPath)
    target.getFileSystem(new Configuration()).copyFromLocalFile(false, true, local(localFilePath), target)
  }

  /** Copies a file to a local one. */
  def CopyFileToLocal(hdfsPath: String, localFilePath: String): Unit = {
    val source = new Path(hdfsPath)
    source.getFileSystem(new Configuration()).copyToLocalFile(false, source, local(localFilePath), true)
  }

  /** Writes a net's model, and its state beside it if that is asked for. A model alone has the name that is given,
    * but for `.h5` at its end, which follows the solver's format; with a state both have the names of snapshots.
    */
  def GenModelOrState(caffeNet: CaffeNet, modelFilename: String, genState: Boolean): Unit = {
    val step = caffeNet.snapshot()
    for (isState <- Seq(false) ++ (if (genState) Seq(true) else Nil)) {
      val written = Paths.get(caffeNet.snapshotFilename(step, isState)).toAbsolutePath
      CopyFileToHDFS(written.toString, named(modelFilename, written, genState))
      Files.delete(written)
    }
  }

  private def named(model: String, written: LocalPath, hasOwnName: Boolean): String = {
    val name = written.getFileName.toString
    if (hasOwnName) model.substring(0, model.lastIndexOf('/') + 1) + name
    else model.stripSuffix(".h5") + (if (name.endsWith(".h5")) ".h5" else "")
  }

  private def local(path: String): Path = new Path(Paths.get(path).toUri)
}
