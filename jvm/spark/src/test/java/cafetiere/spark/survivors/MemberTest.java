// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.survivors;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import cafetiere.spark.TestImages;
import cafetiere.spark.TestNets;
import cafetiere.spark.barrier.TrainingJobTest;
import cafetiere.spark.line.Handshake;
import cafetiere.spark.line.LineChannel;
import cafetiere.spark.line.LineServer;
import cafetiere.spark.plan.TrainingPlan;
import cafetiere.spark.run.TaskSetup;
import cafetiere.spark.store.SnapshotFiles;
import cafetiere.spark.survivors.MembershipMessage.Kind;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.SerializableConfiguration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Both ends of a member's connection, where the other end fails. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class MemberTest {
  private static final String SECRET = "a secret of thirty-two characters";
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

  /** A member that is stopped takes nothing; the one who tells it something does not wait for it. */
  @Test
  void nobodyWaitsForAMemberThatReadsNothing() throws Exception {
    String text = "a".repeat(LineChannel.MAX_LINE / 2);
    CountDownLatch sent = new CountDownLatch(1);
    LineServer.Service service = channel -> {
      MemberLink link = new MemberLink(channel);
      for (int i = 0; i < 1_000; i++) link.send(MembershipMessage.of(Kind.REFORM, i, text));
      sent.countDown();
      link.close();
    };
    try (LineServer server =
            new LineServer(new ServerSocket(0, 8, LOOPBACK), "test", SECRET, service);
        LineChannel member =
            LineChannel.connect(LOOPBACK.getHostAddress(), server.port(), SECRET)) {
      sent.await();
    }
  }

  @Test
  void aTrainingThatWaitsForItsTurnSeesThatTheContextIsStopped() throws Exception {
    Semaphore start = new Semaphore(0);
    AtomicInteger asked = new AtomicInteger();
    String message = assertThrows(IllegalStateException.class,
        () -> SurvivorStage.acquire(start, () -> asked.incrementAndGet() == 2)).getMessage();
    assertTrue(message.contains("the SparkContext was stopped"), message);
    start.release();
    SurvivorStage.acquire(start, () -> true);
    assertEquals(0, start.availablePermits());
  }

  /** It would end the thread that runs the member, and nobody would end the wait for it. */
  @Test
  void anErrorOnTheDriverEndsTheAttempt() {
    SparkSession spark = TestImages.session();
    JavaRDD<Iterator<InternalRow>> rows = JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(List.of(1), 1).map(row -> {
          throw new IllegalStateException("the test refuses the row");
        });
    TrainingPlan plan = TestNets.plan(
        TrainingJobTest.estimator(1).setNumWorkers(1), TestImages.images(spark, 7));
    TaskSetup setup = new TaskSetup(plan, 0, "", SECRET, "", 0, "", "",
        new SnapshotFiles("", 0, false), false, 0,
        new SerializableConfiguration(spark.sparkContext().hadoopConfiguration()), null);
    SurvivorStage stage = new SurvivorStage(spark.sparkContext(), "test", setup, rows, () -> {
      throw new NoClassDefFoundError("of the test");
    }, why -> {});
    Exception failure = assertThrows(IllegalStateException.class, stage::run);
    assertTrue(failure.getMessage().contains("NoClassDefFoundError: of the test"), failure.toString());
  }

  @Test
  void aTrainingThatCannotBeginGivesItsTurnUp() throws IOException {
    Semaphore start = new Semaphore(0);
    assertThrows(IllegalStateException.class, () -> SurvivorStage.keepTurn(start, () -> {
      throw new IllegalStateException("the context was stopped");
    }, 2));
    assertEquals(1, start.drainPermits());
    assertThrows(IOException.class, () -> SurvivorStage.keepTurn(start, () -> 1, 2));
    assertEquals(1, start.drainPermits());
    SurvivorStage.keepTurn(start, () -> 2, 2);
    assertEquals(0, start.availablePermits());
  }

  /** The driver ends the connection between a member's proof and its first line. */
  @Test
  void aMemberThatCannotJoinLeavesNoConnection() throws Exception {
    int wanted = 40;
    int failures = 0;
    try (ServerSocket socket = new ServerSocket(0, 8, LOOPBACK)) {
      Thread driver = new Thread(() -> breakOffAll(socket));
      driver.start();
      LineServer.Address address =
          new LineServer.Address(LOOPBACK.getHostAddress(), socket.getLocalPort(), SECRET);
      long before = openSockets();
      while (failures < wanted) {
        try {
          new MemberClient(address, 0).close();
        } catch (IOException e) {
          failures++;
        }
      }
      long left = openSockets() - before;
      assertTrue(left < wanted / 2, left + " connections are left of " + wanted);
      socket.close();
      driver.join();
    }
  }

  private static void breakOffAll(ServerSocket server) {
    while (true) {
      try (Socket member = server.accept()) {
        member.setSoLinger(true, 0);
        String challenge = new Handshake(SECRET).challenge() + "\n";
        member.getOutputStream().write(challenge.getBytes(StandardCharsets.US_ASCII));
        while (member.getInputStream().read() != '\n') { }
      } catch (IOException e) {
        if (server.isClosed()) return;
      }
    }
  }

  private static long openSockets() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files.filter(MemberTest::isSocket).count();
    }
  }

  private static boolean isSocket(Path file) {
    try {
      return Files.readSymbolicLink(file).toString().startsWith("socket:");
    } catch (IOException e) {
      return false;  // closed meanwhile
    }
  }
}
