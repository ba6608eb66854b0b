// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.nn.driver

/** Downpour on CIFAR-10 as text: `AsyncCIFARTest SOLVER NET K [TRAIN [TEST]]`. K updates are added up before
  * they are sent. The pixels that the net gets are less the mean of their image.
  */
object AsyncCIFARTest {
  def main(args: Array[String]): Unit = Program.run("AsyncCIFARTest", args, "K") { program =>
    if (!args(2).matches("[1-9]\\d{0,8}"))
      throw new IllegalArgumentException(s"K is '${args(2)}': it must be a number of at least 1")
    val train = Program.centered(program.images("text", 0, "/data/CIFAR-10/train_batch.txt"))
    val test = Program.centered(program.images("text", 1, "/data/CIFAR-10/test_batch.txt"))
    program.tellAccuracy(program.downpour(train, args(2).toInt), test)
  }
}
