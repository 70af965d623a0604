package server

// maxWaiting is how many goroutines of a pool wait for work.
const maxWaiting = 8

// workerPool runs functions in goroutines that stay for the next one: the stack that
// a call needs is then grown once and not each time. It never makes one wait.
type workerPool struct {
	next    chan func()
	waiting chan struct{} // has a token for each goroutine without work
	stop    chan struct{} // closed to end those
}

func newWorkerPool() *workerPool {
	return &workerPool{next: make(chan func()), waiting: make(chan struct{}, maxWaiting), stop: make(chan struct{})}
}

func (c *workerPool) run(f func()) {
	select {
	case c.next <- f:
	default:
		go c.work(f)
	}
}

func (c *workerPool) work(f func()) {
	for {
		f()
		select {
		case c.waiting <- struct{}{}:
		default:
			return
		}
		select {
		case f = <-c.next:
			<-c.waiting
		case <-c.stop:
			return
		}
	}
}
