// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.util.concurrent.{ArrayBlockingQueue, TimeUnit}

import org.apache.spark.sql.Row

/** The rows of a partition, a batch of `nextBatch` at a time; the last one is as long as it is. */
private[caffe] class Batches[T1, T2](source: DataSource[T1, T2], partition: Iterator[T1])
    extends Iterator[Seq[Row]] {
  private val name = source.getClass.getName
  if (!source.init()) throw new IllegalStateException(s"$name.init() says that its settings are wrong")
  private val queue = new PartitionQueue(partition, source.STOP_MARK)
  source.takeFrom(queue)
  private val batch = source.batchSize()
  if (batch < 1) throw new IllegalStateException(s"$name.batchSize() is $batch: init() must set batchSize_")
  private val holder = source.dummyDataHolder()
  private val parts = SourceTable.parts(holder, source)
  private val transposed = {
    val tops = source.layerParameter.getCosDataParam
    parts.indices.map(i => i < tops.getTopCount && tops.getTop(i).getTranspose)
  }

  override def hasNext: Boolean = queue.hasMore

  override def next(): Seq[Row] = {
    val ids = new Array[String](batch)
    val before = queue.taken
    val isWhole = source.nextBatch(ids, holder)
    val taken = queue.taken - before
    if (taken == 0) throw new IllegalStateException(s"$name.nextBatch takes nothing of sourceQueue")
    if (!isWhole && queue.hasMore)
      throw new IllegalStateException(s"$name.nextBatch returns false before STOP_MARK came, which would lose rows")
    val count =
      if (isWhole) batch
      else if (ids.exists(_ != null)) ids.lastIndexWhere(_ != null) + 1
      else math.min(taken, batch)
    (0 until count).map { row =>
      val values = parts.indices.map(i => SourceTable.value(parts(i), row, batch, transposed(i)))
      Row.fromSeq(ids(row) +: values)
    }
  }
}

/** A partition as the queue that `nextBatch` takes from: nothing is read ahead and nobody waits. */
private class PartitionQueue[T1](elements: Iterator[T1], stop: T1) extends ArrayBlockingQueue[T1](1) {
  private var ahead: Option[T1] = None
  private var takenSoFar = 0

  /** Elements that were taken, without the mark. */
  def taken: Int = takenSoFar

  def hasMore: Boolean = ahead.nonEmpty || elements.hasNext

  override def take(): T1 = {
    val found = peek()
    if (hasMore) takenSoFar += 1
    ahead = None
    found
  }

  override def poll(): T1 = take()

  override def poll(timeout: Long, unit: TimeUnit): T1 = take()

  override def peek(): T1 = {
    if (ahead.isEmpty && elements.hasNext) ahead = Some(elements.next())
    ahead.getOrElse(stop)
  }

  override def size(): Int = 1

  override def isEmpty: Boolean = false
}
